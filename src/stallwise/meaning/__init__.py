"""Meaning: one lexicon and one signature book, both data. They know no format and no cause."""
