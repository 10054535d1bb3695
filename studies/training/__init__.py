"""Trials of learning rates, lengths and variants of trainings."""
