"""Kernels of several ranks: launches, channels, flags, and a proof that they agree."""
