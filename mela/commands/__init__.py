"""Commands that use a trained model; `mela.cli` lists them."""
