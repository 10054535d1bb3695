"""What several stages share: how they start and end, their paths, processes and checkpoints."""
