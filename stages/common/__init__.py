"""Share what several stages need: start and end, paths, processes and checkpoints."""
