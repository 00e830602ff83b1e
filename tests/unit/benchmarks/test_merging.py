"""benchmarks/merging.py: one small product."""

from ladder_programs import Case, resized
from merging import row


def test_one_launch_less_is_predicted_for_a_small_product():
    text = resized("gemm", {128: 16, 64: 512, 256: 64})
    name, split, *times = row(Case("small", 1, text), "K=4", "h200x1")
    assert (name, split) == ("small", "K=4")
    assert [time[-3:] for time in times] == ["(1)", "(2)", "(1)", "(1)"]
    two, last = (float(time.split()[0]) for time in times[1:3])
    assert last < two
