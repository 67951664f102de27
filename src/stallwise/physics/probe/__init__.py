"""This machine's real ceilings, timed properly: warm-up, events, medians, rotating buffers, spread. Needs torch."""
