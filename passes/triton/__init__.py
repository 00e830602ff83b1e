"""From the dataflow level to Triton."""
