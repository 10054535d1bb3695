"""The command line `mela`: a module for each command, and `main`, which puts them together."""
