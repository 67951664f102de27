"""Shapes of text: what any table, tree or log line looks like, whoever wrote it. They know no quantity and no cause."""
