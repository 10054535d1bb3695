"""The definitions that a script reaches, and a hash for each: the code that a stage depends on."""
