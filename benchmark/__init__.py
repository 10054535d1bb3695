"""Train and measure every method on the same tasks: a DVC project of its own in this folder."""
