"""Define the pipeline's stages: each script reads parameters and files, calls `mela`, and writes files."""

import sys

if sys.argv[0] == "-m":
    # a stage is being started, and has not imported anything yet
    from stages.common.guard import guard

    guard()
