"""comet: a compiler for compound tensor operations with explicit collectives."""
