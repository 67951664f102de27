"""Artifacts in the formats that real tools print, made from a few numbers."""
