"""The race detector, on made-up accesses to made-up addresses."""

from dataclasses import replace

import numpy as np
import pytest

from comet.runtime.memory import (
    Access,
    Kind,
    MemoryMap,
    Operation,
    OutOfBoundsError,
    Region,
    SyncScope,
)
from comet.runtime.races import CONFLICTS, RaceDetector, RaceError

BOX, FLAG = 0x1000, 0x2000
READ, WRITE = Kind.READ, Kind.WRITE


class Ranks:
    """Some ranks, each with one thread; a buffer and a flag that belong to rank 0."""

    def __init__(self, world: int = 2):
        memory = MemoryMap()
        memory.add(Region(BOX, 64, 4, 0, "box", symmetric=True))
        memory.add(Region(FLAG, 64, 4, 0, "flags", symmetric=True))
        self.detector = RaceDetector(memory)
        self.threads = [self.detector.root(rank) for rank in range(world)]

    def touch(self, rank: int, kind: Kind, *elements: int, width: int = 4) -> None:
        """Access elements of the buffer."""
        addresses = np.array([BOX + width * e for e in elements], dtype=np.uint64)
        self.act(rank, Access(kind, addresses, width))

    def flag(self, rank: int, kind: Kind, **how: bool | int | SyncScope) -> None:
        """Access the flag."""
        flag = Access(kind, np.array([FLAG], dtype=np.uint64), 4)
        self.act(rank, replace(flag, **how))

    def act(self, rank: int, access: Access) -> None:
        """Note an access."""
        operation = Operation(rank, "kernel", "k.py:1")
        self.detector.access(self.threads[rank], access, operation)

    def signal(
        self, rank: int, left: int = 1, scope: SyncScope = SyncScope.SYSTEM
    ) -> None:
        """Do what the shim's `signal` does."""
        self.detector.fence(self.threads[rank])
        self.flag(rank, Kind.ATOMIC_WRITE, release=True, left=left, scope=scope)

    def wait(
        self, rank: int, value: int = 1, scope: SyncScope = SyncScope.SYSTEM
    ) -> None:
        """Do what the shim's `wait` does when the flag is there."""
        self.flag(rank, Kind.ATOMIC_READ, acquire=True, awaited=value, scope=scope)


@pytest.mark.parametrize("first", Kind)
@pytest.mark.parametrize("second", Kind)
def test_which_accesses_conflict(first: Kind, second: Kind):
    ranks = Ranks()
    ranks.touch(0, first, 1)
    conflict = (first.writes or second.writes) and not (first.atomic and second.atomic)
    assert (second in CONFLICTS[first]) == (first in CONFLICTS[second]) == conflict
    if not conflict:
        ranks.touch(1, second, 1)
        return
    with pytest.raises(RaceError) as caught:
        ranks.touch(1, second, 1)
    assert caught.value.first[0] is first
    assert caught.value.second[0] is second


@pytest.mark.parametrize("first", Kind)
@pytest.mark.parametrize("second", Kind)
def test_signal_and_wait_order_all_kinds(first: Kind, second: Kind):
    ranks = Ranks()
    ranks.touch(0, first, 1)
    ranks.signal(0)
    ranks.wait(1)
    ranks.touch(1, second, 1)


def test_a_thread_does_not_race_with_itself():
    ranks = Ranks()
    for kind in (WRITE, READ, Kind.ATOMIC_WRITE, WRITE):
        ranks.touch(0, kind, 1)


def test_other_elements_do_not_race():
    ranks = Ranks()
    ranks.touch(0, WRITE, 0, 2)
    ranks.touch(1, WRITE, 1, 3)


def test_a_report_names_rank_elements_and_both_operations():
    ranks = Ranks(3)
    ranks.touch(1, WRITE, 3, 4, 5)
    with pytest.raises(RaceError) as caught:
        ranks.touch(2, READ, 4, 5, 6)
    race = caught.value
    assert race.region.rank == 0
    assert race.elements == (4, 6)
    assert (race.first[1].rank, race.second[1].rank) == (1, 2)
    assert str(race) == (
        "race on box[4:6] of rank 0 (addresses 0x1010 to 0x1018):\n"
        "  write by rank 1, kernel, k.py:1\n"
        "  read by rank 2, kernel, k.py:1\n"
        "nothing orders the two: signal after the first and wait before the second"
    )


def race_after(ranks: Ranks) -> None:
    """Expect that a read of rank 1 races with a write of rank 0."""
    with pytest.raises(RaceError):
        ranks.touch(1, READ, 1)


def test_a_signal_without_wait_orders_nothing():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.signal(0)
    race_after(ranks)


def test_a_write_after_the_signal_is_not_published():
    ranks = Ranks()
    ranks.signal(0)
    ranks.touch(0, WRITE, 1)
    ranks.wait(1)
    race_after(ranks)


def test_an_atomic_after_the_signal_is_not_published():
    """Not even one that releases something else."""
    ranks = Ranks()
    ranks.signal(0)
    address = np.array([BOX + 4], dtype=np.uint64)
    ranks.act(0, Access(Kind.ATOMIC_WRITE, address, 4, acquire=True, release=True))
    ranks.wait(1)
    race_after(ranks)


def test_a_release_publishes_itself():
    """Whoever acquired a flag may read it in any way."""
    ranks = Ranks()
    ranks.signal(0)
    ranks.wait(1)
    ranks.flag(1, READ)
    ranks.flag(1, WRITE)


def test_a_flag_that_was_set_back_starts_again():
    ranks = Ranks()
    ranks.signal(0, left=1)
    ranks.signal(0, left=0)
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, left=1)
    ranks.wait(1, value=1)
    ranks.touch(1, READ, 1)


def test_a_release_without_barrier_publishes_only_what_came_before_one():
    ranks = Ranks()
    ranks.touch(0, WRITE, 0)
    ranks.detector.fence(ranks.threads[0])
    ranks.touch(0, WRITE, 1)
    ranks.flag(0, Kind.ATOMIC_WRITE, release=True)
    ranks.wait(1)
    ranks.touch(1, READ, 0)
    race_after(ranks)


def test_a_relaxed_signal_publishes_nothing():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.detector.fence(ranks.threads[0])
    ranks.flag(0, Kind.ATOMIC_WRITE)
    ranks.wait(1)
    race_after(ranks)


def test_a_relaxed_wait_learns_nothing():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.signal(0)
    ranks.flag(1, Kind.ATOMIC_READ)
    race_after(ranks)


@pytest.mark.parametrize(
    ("release", "acquire"),
    [
        (SyncScope.GPU, SyncScope.SYSTEM),
        (SyncScope.SYSTEM, SyncScope.GPU),
        (SyncScope.GPU, SyncScope.GPU),
        (SyncScope.CTA, SyncScope.SYSTEM),
        (SyncScope.SYSTEM, SyncScope.CTA),
    ],
)
def test_between_ranks_both_sides_need_system_scope(
    release: SyncScope, acquire: SyncScope
):
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, scope=release)
    ranks.wait(1, scope=acquire)
    race_after(ranks)


def test_within_a_rank_gpu_scope_is_enough():
    ranks = Ranks()
    detector, host = ranks.detector, ranks.threads[0]
    ranks.threads = [detector.fork(host), detector.fork(host)]
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, scope=SyncScope.GPU)
    ranks.wait(1, scope=SyncScope.GPU)
    ranks.touch(1, READ, 1)


def test_a_wait_knows_only_what_its_value_stands_for():
    """It may have looked late; another interleaving lets it look at once."""
    ranks = Ranks()
    ranks.signal(0, left=1)
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, left=2)
    ranks.wait(1, value=1)
    race_after(ranks)


def test_a_wait_for_the_last_value_knows_all():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, left=1)
    ranks.touch(0, WRITE, 2)
    ranks.signal(0, left=2)
    ranks.wait(1, value=2)
    ranks.touch(1, READ, 1, 2)


def test_counting_flags_gather_what_all_writers_published():
    ranks = Ranks(3)
    ranks.touch(0, WRITE, 0)
    ranks.touch(1, WRITE, 1)
    ranks.signal(0, left=1)
    ranks.signal(1, left=2)
    ranks.wait(2, value=2)
    ranks.touch(2, READ, 0, 1)


def test_a_plain_store_to_a_flag_ends_its_history():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1)
    ranks.signal(0)
    ranks.flag(0, WRITE)
    with pytest.raises(RaceError, match=r"race on flags\[0:1\]"):
        ranks.wait(1)


def test_order_is_handed_on():
    ranks = Ranks(3)
    ranks.touch(0, WRITE, 1)
    ranks.signal(0, left=1)
    ranks.wait(1, value=1)
    ranks.signal(1, left=2)
    ranks.wait(2, value=2)
    ranks.touch(2, WRITE, 1)


def test_a_write_races_with_every_reader():
    """Also with those before the last one."""
    ranks = Ranks(3)
    ranks.touch(1, READ, 1)
    ranks.touch(2, READ, 1)
    ranks.signal(2)
    ranks.wait(0)
    with pytest.raises(RaceError) as caught:
        ranks.touch(0, WRITE, 1)
    assert caught.value.first[1].rank == 1


def test_elements_of_another_width_overlap():
    ranks = Ranks()
    ranks.touch(0, WRITE, 1, width=8)  # elements 2 and 3 of 4 bytes
    ranks.touch(1, WRITE, 1)
    with pytest.raises(RaceError, match=r"box\[3:4\]"):
        ranks.touch(1, WRITE, 3)


def test_a_kernel_comes_after_its_launch_and_before_its_end():
    ranks = Ranks()
    detector, host = ranks.detector, ranks.threads[0]
    ranks.touch(0, WRITE, 1)
    ranks.threads[0] = program = detector.fork(host)
    ranks.touch(0, WRITE, 1)
    ranks.threads[0] = host
    detector.join(host, program)
    ranks.touch(0, READ, 1)


def test_programs_of_one_kernel_are_concurrent():
    ranks = Ranks()
    host = ranks.threads[0]
    ranks.threads = [ranks.detector.fork(host) for _ in range(2)]
    ranks.touch(0, WRITE, 1)
    race_after(ranks)


def test_programs_of_successive_kernels_are_ordered_and_numbers_come_again():
    ranks = Ranks(1)
    detector, host = ranks.detector, ranks.threads[0]
    numbers: set[int] = set()
    for _ in range(3):
        ranks.threads[0] = program = detector.fork(host)
        numbers.add(program)
        ranks.touch(0, WRITE, 1)
        detector.join(host, program)
    assert len(numbers) == 1


def test_a_barrier_orders_all_ranks():
    ranks = Ranks(3)
    ranks.touch(0, WRITE, 1)
    ranks.detector.barrier(ranks.threads)
    ranks.touch(2, WRITE, 1)
    race_after(ranks)


def test_what_no_element_has_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    """And nothing else: races with what is left are still found."""
    monkeypatch.setattr("comet.runtime.races.ROOM", 4)
    ranks = Ranks()
    ranks.touch(1, READ, 9)
    for _ in range(20):
        ranks.touch(0, WRITE, 1, 2)
        ranks.touch(0, WRITE, 2)
    race_after(ranks)
    with pytest.raises(RaceError):
        ranks.touch(0, WRITE, 9)


def test_an_element_read_again_still_races():
    ranks = Ranks()
    ranks.touch(1, READ, 1)
    ranks.touch(1, READ, 1)
    with pytest.raises(RaceError):
        ranks.touch(0, WRITE, 1)


def test_a_read_after_a_barrier_is_another():
    """It is not what the signal before it published."""
    ranks = Ranks()
    ranks.touch(1, READ, 1)
    ranks.signal(1)
    ranks.touch(1, READ, 1)
    ranks.wait(0)
    with pytest.raises(RaceError):
        ranks.touch(0, WRITE, 1)


def test_accesses_to_nobodys_memory():
    ranks = Ranks()
    with pytest.raises(OutOfBoundsError, match="ends after box"):
        ranks.touch(0, READ, 8, 9, width=7)
    with pytest.raises(OutOfBoundsError, match="0x1040 is in no tensor"):
        ranks.touch(0, READ, 15, 16)


def test_one_access_to_two_regions_is_split():
    memory = MemoryMap()
    for start, name in ((0, "a"), (32, "b"), (64, "c")):
        memory.add(Region(start, 32, 4, 0, name))
    access = Access(READ, np.array([60, 4, 28, 64, 0], dtype=np.uint64), 4)
    parts = [(r.name, part.addresses.tolist()) for r, part in memory.split(access)]
    assert parts == [("a", [4, 28, 0]), ("b", [60]), ("c", [64])]


def test_a_new_region_takes_the_place_of_old_ones():
    memory = MemoryMap()
    for start, name in ((0, "a"), (32, "b"), (16, "c")):
        memory.add(Region(start, 32, 4, 0, name))
    found = [memory.find(address) for address in (0, 16, 47, 48)]
    assert [region and region.name for region in found] == [None, "c", "c", None]


def test_an_address_in_a_heap_without_allocation():
    memory = MemoryMap()
    memory.add_heap(1, 0x100, 0x100)
    access = Access(READ, np.array([0x108], dtype=np.uint64), 4)
    with pytest.raises(OutOfBoundsError, match="at offset 8 in the heap of rank 1"):
        list(memory.split(access))
