"""Walks over directed graphs, and the order of producers first."""

from __future__ import annotations

from graphlib import CycleError

import pytest

from comet.digraph import components, reachable, topological_order

EDGES = {"a": "bc", "b": "d", "c": "d", "d": "b", "e": "a"}
"""The nodes to which each node has edges; b and d are a cycle."""


def test_each_reachable_node_comes_once():
    assert sorted(reachable("a", EDGES.__getitem__)) == ["a", "b", "c", "d"]
    assert sorted(reachable("bb", EDGES.__getitem__)) == ["b", "d"]


def test_a_walk_asks_for_edges_only_as_far_as_it_is_read():
    walk = reachable("ax", EDGES.__getitem__)
    assert next(walk) == "x"  # which has no entry: its edges are not asked for


def test_components_are_in_the_order_of_their_first_nodes():
    edges = {"a": "d", "b": "", "c": "x", "d": "a", "e": "x", "x": "ce"}
    found = components("abcde", edges.__getitem__)
    assert ["".join(group) for group in found] == ["ad", "b", "ce"]


def test_producers_come_first_and_the_order_stays_otherwise():
    producers = {"a": "d", "b": "", "c": "", "d": "c"}
    assert "".join(topological_order("abcd", producers.__getitem__)) == "bcda"


def test_producers_that_are_no_nodes_do_not_count():
    assert list(topological_order("ba", {"a": "b", "b": "x"}.__getitem__)) == ["b", "a"]


@pytest.mark.parametrize("producers", [{"a": "b", "b": "a"}, {"a": "a", "b": ""}])
def test_nodes_that_depend_on_each_other_have_no_order(producers: dict[str, str]):
    with pytest.raises(CycleError):
        next(topological_order("ab", producers.__getitem__))
