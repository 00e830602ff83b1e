"""Random trees of chunks to cut folds by."""

import random

from comet.interpreter import FoldTree, Merge, Steps


def random_tree(extent: int, generator: random.Random) -> FoldTree:
    """Return a random tree over `extent` elements; chunks and sides may be empty."""
    if extent < 2 or generator.random() < 0.3:
        sizes: list[int] = []
        while extent > 0:
            sizes.append(generator.randint(0, extent))
            extent -= sizes[-1]
        return Steps(tuple(sizes))
    left = generator.randint(0, extent)
    return Merge(random_tree(left, generator), random_tree(extent - left, generator))
