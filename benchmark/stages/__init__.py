"""Define the benchmark's own stages: each script trains or measures one cell."""
