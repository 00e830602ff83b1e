"""The search over all mappings of a program: its space, and the best one in it."""
