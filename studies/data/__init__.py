"""Studies of the data sets themselves."""
