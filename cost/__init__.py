"""What a choice costs: pure functions on numbers and arrays."""
