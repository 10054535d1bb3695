"""The command line `mela`: a module for each group of commands."""
