"""Answers to many questions: a store of answers, and processes that share the work."""
