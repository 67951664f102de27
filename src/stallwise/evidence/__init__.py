"""The waist: what was observed, with where it came from. No formats, no causes."""
