"""Sub-commands of `stallwise plan`: one per file, imported only when called."""
