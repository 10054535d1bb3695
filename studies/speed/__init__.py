"""Measure speed and memory, each against a reference."""
