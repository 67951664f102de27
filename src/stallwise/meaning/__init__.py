"""Meaning: one lexicon and one book of signatures. Knows words, units, messages and codes; no format and no cause."""
