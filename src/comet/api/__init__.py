"""What the tools do, as functions: typed questions, typed answers, no printing."""
