"""Run a module in this process with less than others have: other disks, or no exemption from rights.

A shell or a test starts it as ``python -m tests.helpers.restricted HOW MODULE [ARGUMENT ...]``, in a fork that has
imported the packages. HOW is the number of a process whose disks it is to see, or ``rights``.
"""

import ctypes
import os
import runpy
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
# version 3 of capabilities, and CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH among them
VERSION, EXEMPT = 0x20080522, 1 << 1 | 1 << 2


def see_the_disks_of(process: str) -> None:
    """Join the namespaces of a process, whose user may mount disks of its own."""
    folder = Path.cwd()
    for kind in ("user", "mnt"):
        with Path(f"/proc/{process}/ns/{kind}").open() as namespace:
            _require(LIBC.setns(namespace.fileno(), 0))
    os.chdir(folder)


def give_up_exemption() -> None:
    """Have the rights of files concern this process, whoever has started it."""
    header, sets = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()
    _require(LIBC.capget(header, sets))
    # effective, permitted, inheritable
    for number in range(3):
        sets[number] &= ~EXEMPT
    _require(LIBC.capset(header, sets))


def _require(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    _, how, module, *arguments = sys.argv
    if how == "rights":
        give_up_exemption()
    else:
        see_the_disks_of(how)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
