"""One habit that costs per file; see stallwise.lint."""
