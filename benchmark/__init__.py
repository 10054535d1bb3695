"""Every method on the same tasks: stages of the benchmark's own DVC project, which is this folder."""
