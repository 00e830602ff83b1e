"""The symmetric heap."""

import pytest
import torch

from comet.runtime.heap import ALIGNMENT, Allocation, Heap, aligned_bytes


def test_allocations_are_aligned_zero_and_apart():
    heap = Heap(aligned_bytes(8 * ALIGNMENT).fill_(7))
    row = heap.zeros((3, 5), torch.float32, "row")
    flags = heap.zeros((2,), torch.int32, "flags")
    assert row.shape == (3, 5)
    assert not row.any()
    assert not flags.any()
    assert (row.data_ptr(), flags.data_ptr()) == (heap.base, heap.base + ALIGNMENT)
    row.fill_(1.0)
    assert not flags.any()
    assert heap.base % ALIGNMENT == 0


def test_the_log_says_what_was_allocated():
    heap = Heap(aligned_bytes(8 * ALIGNMENT))
    heap.zeros((3, 5), torch.float16, "row")
    heap.zeros((), torch.int64)
    assert heap.log == [
        Allocation(0, (3, 5), "float16", "row"),
        Allocation(ALIGNMENT, (), "int64", "allocation1"),
    ]


@pytest.mark.parametrize(
    ("shape", "dtype", "name"),
    [
        ((5, 4), torch.float32, "row"),
        ((4, 5), torch.int32, "row"),
        ((4, 5), torch.float32, "other"),
    ],
)
def test_the_hash_tells_allocations_apart(
    shape: tuple[int, int], dtype: torch.dtype, name: str
):
    heaps = [Heap(aligned_bytes(8 * ALIGNMENT)) for _ in range(3)]
    heaps[0].zeros((4, 5), torch.float32, "row")
    heaps[1].zeros((4, 5), torch.float32, "row")
    heaps[2].zeros(shape, dtype, name)
    hashes = [heap.log_hash() for heap in heaps]
    assert hashes[0] == hashes[1] != hashes[2]
    assert all(0 <= number < 2**63 for number in hashes)


def test_the_order_of_allocations_matters():
    first, second = (Heap(aligned_bytes(8 * ALIGNMENT)) for _ in range(2))
    for heap, names in ((first, "ab"), (second, "ba")):
        for name in names:
            heap.zeros((4,), torch.float32, name)
    assert first.log_hash() != second.log_hash()


def test_a_full_heap_says_how_much_it_needs():
    heap = Heap(aligned_bytes(ALIGNMENT))
    heap.zeros((ALIGNMENT,), torch.int8)
    with pytest.raises(MemoryError, match=r"of 1024 bytes has no room for 4 more at"):
        heap.zeros((1,), torch.int32)


def test_allocations_are_watched():
    seen: list[tuple[int, str]] = []
    heap = Heap(
        aligned_bytes(8 * ALIGNMENT),
        lambda tensor, allocation: seen.append((tensor.data_ptr(), allocation.name)),
    )
    row = heap.zeros((4,), torch.float32, "row")
    assert seen == [(row.data_ptr(), "row")]


def test_a_heap_holds_its_allocations_and_their_parts():
    heap = Heap(torch.empty(4 * ALIGNMENT, dtype=torch.uint8, device="meta"))
    slots = heap.zeros((2, 5), torch.float16)
    assert heap.holds(slots)
    assert heap.holds(slots[1])
    assert not heap.holds(torch.empty((2, 5), device="meta"))
