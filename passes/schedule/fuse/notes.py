"""The attributes of a function in which `fuse` notes what it chose."""

STRATEGY = "comet.strategy"
"""The strategy."""

CHUNKS = "comet.chunks"
"""On accelerators, where its folds stand."""

BETWEEN = "comet.between"
"""On GPUs, what becomes of products that are needed twice: recomputed or spilled."""
