"""Graph and elementary level: ops are decomposed, streamed and split."""
