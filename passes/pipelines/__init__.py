"""Passes that consist of passes."""
