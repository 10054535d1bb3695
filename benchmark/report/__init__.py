"""Show the benchmark's results in tables, charts and comparisons."""
