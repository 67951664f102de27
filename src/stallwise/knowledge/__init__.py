"""What is known of causes, as data: the cases it was counted from, how causes are told of, and what was fitted to them."""
