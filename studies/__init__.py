"""Studies behind the documentation: speed, labels, training and robustness."""
