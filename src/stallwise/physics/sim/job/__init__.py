"""A job of many workers as operations with dependencies, replayed with other durations."""
