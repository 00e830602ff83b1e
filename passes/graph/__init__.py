"""Graph and elementary level: whole ops are decomposed, streamed and split."""
