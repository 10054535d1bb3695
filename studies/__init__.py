"""Study what the documentation reports: speed, labels, training and robustness."""
