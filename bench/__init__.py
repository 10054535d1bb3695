"""Measurements of speed, each against a reference in the same run."""
