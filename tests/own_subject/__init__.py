"""What a real file shows of its own subject: out of line, in line with its numbers, or not in this file."""
