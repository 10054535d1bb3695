"""The tables, charts and comparisons that the benchmark's results are shown in."""
