"""Study damaged files and killed processes."""
