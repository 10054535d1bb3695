"""Study inferred labels: how good they are, and what they depend on."""
