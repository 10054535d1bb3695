"""Export a trained embedding as a program, for ONNX Runtime and for PyTorch without this library."""

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import torch

from mela.data.array_types import Features
from mela.errors import MelaError, one_line, out_of_memory
from mela.models.backbones import Backbone

Format = Literal["onnx", "torch"]

INPUT, OUTPUT = "images", "features"
BATCHES = (1, 2, 7, 64)
BATCH = {INPUT: {0: torch.export.Dim("batch", min=1)}}
TOLERANCE = 1e-5
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
# the project is on no index: the package of its name there is somebody else's
INSTALL = f"run `pip install -e '.[onnx]'` in a clone of the project, or `pip install {' '.join(PACKAGES)}` elsewhere"


@dataclass(frozen=True, kw_only=True)
class Export:
    """Hold a file that was made of an embedding.

    Attributes
    ----------
    file : str
        Its name.
    kind : {"onnx", "torch"}
    content : bytes
    difference : float
        Largest difference from the embedding; see `largest_difference`.
    """

    file: str
    kind: Format
    content: bytes
    difference: float


def export(kind: Format, file: str, backbone: Backbone, configuration: Mapping[str, Any]) -> Export:
    """Export the embedding to a file, and check that it computes the same.

    Parameters
    ----------
    kind : {"onnx", "torch"}
    file : str
        Its name; nothing is written.
    backbone : Backbone
        On the CPU; its memory format is changed.
    configuration : mapping
        Arguments of `mela.models.backbones.build_backbone` but for the seed.

    Raises
    ------
    MelaError
        Features differ by more than 1e-5 from those of the embedding.
    """
    channels, size = configuration["channels"], configuration["size"]
    convert, start = (to_onnx, run_onnx) if kind == "onnx" else (to_torch, run_torch)
    content = convert(backbone, channels, size)
    difference = largest_difference(start(content), backbone, channels, size)
    # which NaN is not either
    if not difference <= TOLERANCE:
        raise MelaError(
            f"--{kind}: expected features within {TOLERANCE:g} of those of the embedding (share of the largest), got a "
            f"difference of {difference:.2g}; nothing was written, try other versions of torch and of the packages "
            "for ONNX"
        )
    return Export(file=file, kind=kind, content=content, difference=difference)


def require_packages() -> None:
    """Raise MelaError unless all that is needed for ONNX is installed and can be imported."""
    for name in PACKAGES:
        if find_spec(name) is None:
            raise MelaError(f"--onnx: expected the package {name}, which is not installed; {INSTALL}")
        try:
            import_module(name)
        # what is compiled for another system or version raises almost anything
        except Exception as error:
            if out_of_memory(error):
                raise
            raise MelaError(
                f"--onnx: the package {name} is installed, but it cannot be imported: {one_line(error)}; install it "
                f"again: {INSTALL}"
            ) from error


def to_torch(backbone: Backbone, channels: int, size: int) -> bytes:
    """Return a ``.pt2`` file: images (n, c, h, w), float32 in [0, 1], to features (n, m), for any n.

    Parameters
    ----------
    backbone : Backbone
        On the CPU; its memory format is changed.
    channels, size : int
        Channels and side in pixels of the images.
    """
    file = io.BytesIO()
    torch.export.save(_program(backbone, channels, size), file)
    return file.getvalue()


def to_onnx(backbone: Backbone, channels: int, size: int) -> bytes:
    """Return an ``.onnx`` file of the same, see `to_torch`, with the weights inside."""
    import onnx

    program = _program(backbone, channels, size)
    with _quiet():
        exported = torch.onnx.export(
            program,
            dynamo=True,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes=BATCH,
            external_data=False,
            verbose=False,
        )
    assert exported is not None
    model, graph = exported.model_proto, exported.model_proto.graph
    # they tell from which folders of whose machine each operation came
    for part in (graph.node, graph.value_info, graph.initializer, graph.input, graph.output):
        for entry in part:
            del entry.metadata_props[:]
    model.producer_name = "mela"
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def run_torch(content: bytes) -> Callable[[Features], Features]:
    """Return the function that a ``.pt2`` file computes."""
    with warnings.catch_warnings():
        # torch reads weights from bytes that cannot be written to, and does not write to them
        warnings.filterwarnings("ignore", "The given buffer is not writable", UserWarning)
        # torch 2.4 warns of a default of torch.load that it relies on itself
        warnings.filterwarnings("ignore", "You are using `torch.load` with `weights_only=False`", FutureWarning)
        module = torch.export.load(io.BytesIO(content)).module()

    def compute(images: Features) -> Features:
        with torch.inference_mode():
            return module(torch.from_numpy(images)).numpy()

    return compute


def run_onnx(content: bytes) -> Callable[[Features], Features]:
    """Return the function that an ``.onnx`` file computes, by ONNX Runtime on the CPU."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return lambda images: session.run([OUTPUT], {INPUT: images})[0]


def largest_difference(compute: Callable[[Features], Features], backbone: Backbone, channels: int, size: int) -> float:
    """Return how far features are from those of the embedding, as a share of the largest of these.

    Taken on random images, in batches of 1, 2, 7 and 64.
    """
    rng, worst = np.random.default_rng(0), np.float64(0)
    for n in BATCHES:
        images = (rng.integers(256, size=(n, channels, size, size)) / 255).astype(np.float32)
        with torch.inference_mode():
            expected = backbone(torch.from_numpy(images)).numpy()
        found = compute(images)
        if found.shape != expected.shape:
            return float("inf")
        scale = float(np.abs(expected).max()) or 1.0
        # which keeps NaN, as max does not
        worst = np.maximum(worst, np.abs(found - expected).max() / scale)
    return float(worst)


def _program(backbone: Backbone, channels: int, size: int) -> torch.export.ExportedProgram:
    # weights that are not stored in the order of their axes are written with a warning
    backbone = backbone.to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]
    example = torch.zeros(2, channels, size, size)
    program = torch.export.export(backbone, (example,), dynamic_shapes=BATCH, strict=False)
    for node in program.graph.nodes:
        # from which folders of whose machine it came
        node.meta.pop("stack_trace", None)
    return program


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's messages, which are for its own developers."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            # torch copies trees of a kind that it calls deprecated itself
            warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
