"""Try learning rates, lengths and variants of trainings."""
