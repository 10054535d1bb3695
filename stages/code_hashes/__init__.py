"""Find and hash the definitions that a stage's script reaches, on which the stage depends."""
