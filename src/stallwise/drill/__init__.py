"""Practice: cards, numbers worked out by the cost model, and progress that remembers what you forget."""
