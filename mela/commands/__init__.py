"""Commands of `mela` that have a module of their own."""
