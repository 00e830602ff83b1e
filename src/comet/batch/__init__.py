"""Many questions: answers that are kept, and processes that share the work."""
