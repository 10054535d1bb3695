"""Few-shot methods, one in each module, found by its name (`mela.method.find_method`)."""
