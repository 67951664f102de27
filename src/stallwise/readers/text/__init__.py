"""Meaning: one lexicon and one book of signatures, both data. Knows words, units, messages and codes; no format and no cause."""
