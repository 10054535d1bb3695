"""Extras without which most tests can run, and marks of those that cannot."""

from importlib.util import find_spec

import pytest

HAS_ONNX = find_spec("onnxruntime") is not None
ONNX = pytest.mark.skipif(not HAS_ONNX, reason="the extra onnx is not installed")
