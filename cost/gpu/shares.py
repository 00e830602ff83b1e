"""Equal runs of a list of the tiles of all sequences, by which programs share work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedTiles:
    """
    The runs of a list.

    Lengths are known at run time, so runs are priced with sequences of the mean length.
    """

    part: str
    """The loop of the launch grid over the parts of a sequence."""
    sequence: str
    """The loop over sequences."""
    loops: frozenset[str]
    """The loops over the tiles of a sequence."""
    sequences: int
    parts: int
    """The most parts of a sequence."""
    runs: int

    @property
    def folded_parts(self) -> int:
        """
        The parts of all sequences, of which a program folds several in turn.

        Each end of a run and of a sequence, except for the last, ends one.
        """
        return min(self.runs + self.sequences - 1, self.sequences * self.parts)

    @property
    def seen_parts(self) -> float:
        """The parts of a sequence, over the most that there may be."""
        return self.folded_parts / (self.sequences * self.parts)

    @property
    def sequences_of_run(self) -> float:
        """The sequences of which a program does some tiles, the mean over all."""
        return self.folded_parts / self.runs

    @property
    def tiles_of_run(self) -> float:
        """The tiles of a run, over those of a sequence."""
        return self.sequences / self.runs
