"""Measurements of speed and memory, each against a reference."""
