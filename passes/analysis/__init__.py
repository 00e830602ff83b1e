"""Analyses that several passes use: pure functions on IR."""
