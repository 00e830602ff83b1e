"""Passes that are made of passes."""
