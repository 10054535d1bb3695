"""A stage depends on the definitions that its script reaches; these modules find and hash them."""
