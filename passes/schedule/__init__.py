"""The schedule level: passes that build tile trees, and that choose their factors."""
