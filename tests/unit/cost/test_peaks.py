"""The points of a program at which it may hold most."""

from comet.cost.gpu.peaks import peak_groups, peak_points
from comet.cost.gpu.terms import DividedEpilogue, Operands, Point, Product, Term

A, B, C = (Term((dim, "E"), 2.0) for dim in "ABC")
DOT = Product(frozenset({"A"}), frozenset({"B"}), frozenset({"E"}), frozenset[str]())
READ = Operands(A, B, DOT)


def test_a_point_that_holds_less_than_another_is_no_peak():
    most = Point((A, B, C), (A,))
    assert peak_points([Point((A, C)), most, Point((B,), (A,)), Point((C, A))]) == (
        most,
    )


def test_of_equal_points_the_first_is_a_peak():
    assert peak_points([Point((A, B)), Point((B, A))]) == (Point((A, B)),)


def test_equal_tiles_are_several():
    """Two values of the same size are two tiles."""
    points = (Point((A, A)), Point((A, B)))
    assert peak_points([*points, Point((A,))]) == points


def test_a_tile_is_no_vector():
    points = (Point((A,)), Point((), (A,)), Point((), accumulator=(A,)))
    assert peak_points(points) == points


def test_operands_of_a_product_are_held_beside_tiles():
    during, before = Point((A,), (), READ), Point((A,), (), READ, before=True)
    assert peak_points([Point((A,)), during, before]) == (during, before)


def test_only_points_of_one_epilogue_are_compared():
    """In subtiles, a part of a tile is held, which may be less than all of another."""
    inside = Point((A, B), epilogue=DividedEpilogue((A,), loads=True))
    assert peak_points([Point((A,)), inside]) == (Point((A,)), inside)


def test_groups_in_others_are_no_peaks():
    assert peak_groups([(A,), (A, B), (), (B, A), (A, A)]) == ((A, B), (A, A))
