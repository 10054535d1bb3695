"""Studies of damaged files and killed processes."""
