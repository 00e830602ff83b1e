"""From IR to numbers: the inputs of the cost models."""
