"""The command line in this process, which has torch and scikit-learn loaded."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from mela.cli import main as cli


def mela(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What the command prints, and its exit status."""
    words, out, err = ["mela", *map(str, arguments)], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    status = ended.value.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
