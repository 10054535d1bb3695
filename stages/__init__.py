"""The pipeline's stages: each script reads parameters and files, calls `mela`, and writes files."""
