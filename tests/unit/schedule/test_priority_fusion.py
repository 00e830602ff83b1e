"""Priority fusion: kernels of a graph, merged in the order of what that saves."""

from collections.abc import Sequence

import pytest
from covering import exhaustive, one_of
from gpu_graphs import H200, kernels
from graph_text import Program
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import (
    GRAPHS,
    WIDE,
    layer_norm,
    llama_block,
    rms_norm,
    softmax,
)
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.launches import Dependences
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Group, Kernel, Values, elementary_ops
from comet.passes.schedule.fuse.gpu.priority import priority_partition
from comet.passes.schedule.fuse.gpu.recompute import (
    cheap_to_recompute,
    free_to_recompute,
)
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.plan_string import PLAN


def function(text: str) -> FuncOp:
    (found,) = compute_functions(parse_module(text))
    return found


@one_of(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=exhaustive if name == "llama_block" else ())
        for name in sorted(GRAPHS)
    ],
)
def test_graphs_keep_their_meaning(name: str):
    before = parse_module(GRAPHS[name])
    after = run_passes(
        before, f"{H200},sink-renames,stream,fuse{{strategy=priority}},tile"
    )
    assert_same_meaning(before, after, "main")


def test_a_wide_block_is_seven_launches_and_cheapest():
    """
    Scores, softmax and values are one kernel; so are gate, up and SiLU.

    Keys and values, of other tiles, are two kernels that can share a launch.
    """
    found = kernels(llama_block(WIDE, "bf16"), "strategy=auto")
    read = [["q", "k"], ["v"]]
    assert found == [["h1"], *read, ["mixed"], ["y"], ["h2"], ["gated"], ["z"]]


class Lengths:
    """Prices that count ops: a launch costs 10, and every op after the third 100."""

    def __init__(self) -> None:
        self.asked: list[Group] = []

    def seconds(self, group: Group, outs: Values) -> float:
        self.asked.append(group)
        return self.least(group, outs)

    def least(self, group: Group, outs: Values) -> float:
        return 10 + 100 * max(0, len(group) - 3)

    roughly = least

    def launched(self, needs: Dependences[Kernel]) -> float:
        return sum(self.seconds(*kernel) for kernel in needs.kernels)


class Squares(Lengths):
    """The same with all kernels that read of none as one launch, and their squares."""

    def launched(self, needs: Dependences[Kernel]) -> float:
        reading = sum(bool(read) for read in needs.read.values())
        return 10 * (1 + reading) + sum(len(group) ** 2 for group, _ in needs.kernels)


def test_of_merges_with_equal_exact_bounds_only_those_made_are_priced():
    p = Program({"M": 4, "K": 8, "N": 4})
    x = p.argument("x", "MK")
    made = [p.contract(f"c{i}", x, p.argument(f"w{i}", "KN"), "MN") for i in range(3)]
    ops, prices = elementary_ops(function(p.returning(*made))), Lengths()
    assert priority_partition(ops, prices) == (ops,)
    assert {group for group in prices.asked if len(group) > 1} == {ops[:2], ops}


def test_merges_of_kernels_that_share_a_launch_anyway_are_undone():
    """Two products of %x are one launch, their sum is another one if it is apart."""
    p = Program({"M": 4, "K": 8, "N": 4})
    x = p.argument("x", "MK")
    one, other = (
        p.contract(f"c{number}", x, p.argument(f"w{number}", "KN"), "MN")
        for number in range(2)
    )
    siblings = elementary_ops(function(p.returning(one, other)))
    assert len(priority_partition(siblings, Lengths())) == 1
    assert len(priority_partition(siblings, Squares())) == 2


class Alone(Lengths):
    """The same; launches of single ops take least, and those of one kernel less."""

    def launched(self, needs: Dependences[Kernel]) -> float:
        longest = max(len(group) for group, _ in needs.kernels)
        return 0.0 if longest == 1 else float(len(needs.kernels))


def test_ops_that_only_share_inputs_are_separated_at_once():
    """Products of %x: two kernels take more than one, and three take less."""
    p = Program({"M": 4, "K": 8, "N": 4})
    x = p.argument("x", "MK")
    made = [p.contract(f"c{i}", x, p.argument(f"w{i}", "KN"), "MN") for i in range(3)]
    ops = elementary_ops(function(p.returning(*made)))
    assert priority_partition(ops, Alone()) == tuple((op,) for op in ops)


def test_ops_without_products_are_not_separated():
    """Sums of parts may merge in the launch of their products, which has no price."""
    p = Program({"M": 4, "K": 8, "N": 4})
    x = p.argument("x", "MK")
    sums = [p.reduce(f"s{i}", "add", x, "M") for i in range(2)]
    product = p.contract("c", x, p.argument("w", "KN"), "MN")
    ops = elementary_ops(function(p.returning(*sums, product)))
    assert priority_partition(ops, Alone()) == (ops,)


class Pairs(Lengths):
    """Pairs of three ops save 10 and 11, by bounds 13 and 11.5; all three nothing."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        super().__init__()
        first, second, third = ops
        self.saved: dict[Group, float] = {(first, second): 10, (second, third): 11}
        self.bounds: dict[Group, float] = {(first, second): 13, (second, third): 11.5}

    def seconds(self, group: Group, outs: Values) -> float:
        return 20 * len(group) - self.saved.get(group, 0)

    def least(self, group: Group, outs: Values) -> float:
        return 20 * len(group) - self.bounds.get(group, 0)

    roughly = least


class Gains(Pairs):
    """The same, for which no kernels are launched: only merges by gain change them."""

    def launched(self, needs: Dependences[Kernel]) -> float:
        return 0.0


def three_products() -> tuple[Operation, ...]:
    """Return the ops of a chain of products."""
    p = Program({"M": 4, "K": 8, "N": 4})
    value = p.argument("x", "MK")
    for number, (dim, to) in enumerate(["KN", "NK", "KN"]):
        weight = p.argument(f"w{number}", dim + to)
        value = p.contract(f"c{number}", value, weight, "M" + to)
    return elementary_ops(function(p.returning(value)))


def test_eager_merges_do_not_wait_for_bounds_that_are_a_little_lower():
    ops = three_products()
    first, second, third = ops
    assert priority_partition(ops, Gains(ops)) == ((first,), (second, third))
    eager = priority_partition(ops, Gains(ops), eager=True)
    assert eager == ((first, second), (third,))


def test_merges_that_shut_out_better_ones_are_undone():
    """An eager merge of the first two products, after which the third is alone."""
    ops = three_products()
    first, second, third = ops
    eager = priority_partition(ops, Pairs(ops), eager=True)
    assert eager == ((first,), (second, third))


def test_merges_that_save_a_launch_stay():
    p = Program({"M": 4, "K": 8, "N": 4})
    value = p.argument("x", "MK")
    for number, (dim, to) in enumerate(["KN", "NK"]):
        weight = p.argument(f"w{number}", dim + to)
        value = p.contract(f"c{number}", value, weight, "M" + to)
    chain = elementary_ops(function(p.returning(value)))
    assert len(priority_partition(chain, Squares())) == 1


def test_merges_end_where_they_cost_more_than_a_launch():
    p = Program({"M": 4, "K": 8, "N": 4})
    value = p.argument("x", "MK")
    for number, (dim, to) in enumerate(["KN", "NK", "KN", "NK", "KN"]):
        weight = p.argument(f"w{number}", dim + to)
        value = p.contract(f"c{number}", value, weight, "M" + to)
    ops = elementary_ops(function(p.returning(value)))
    groups = priority_partition(ops, Lengths())
    assert sorted(map(len, groups)) == [2, 3]


def test_kernels_around_a_view_are_not_merged():
    """The value goes from %h through a rename to %s, which also reads %h itself."""
    p = Program({"M": 4, "N": 4, "D": 8})
    h = p.map("h", "exp", p.argument("x", "MD"))
    s = p.contract("s", h, p.rename("keys", h, "ND"), "MN")
    assert kernels(p.returning(s)) == [["h"], ["s"]]


def test_large_products_of_small_values_are_computed_again():
    """Scores of attention are, and what follows from them; gradients are no such."""
    path = ROOT / "samples" / "blocks" / "llama_backward.mlir"
    module = run_passes(parse_module(path.read_text()), f"{H200},sink-renames")
    (func,) = compute_functions(module)
    simplify(func)
    ops = elementary_ops(func)
    again = cheap_to_recompute(ops, device_of(attached_system(module)))
    names = {op.results[0].name_hint for op in again}
    assert {"scores1", "scores2", "weights"} <= names
    assert all({"M", "N"} <= set(names_of(op.results[0])) for op in again)
    groups = list(map(set, priority_partition(ops, Lengths(), again)))
    read = {v.owner for group in groups for op in group - again for v in op.operands}
    assert again & read
    for group in groups:
        missing = {v.owner for op in group for v in op.operands} - group
        assert again.isdisjoint(missing)


RESIDUAL = """
!x = tensor<2048x4096xbf16, #compound.dims<M, D>>
!y = tensor<2048x4096xf32, #compound.dims<M, D>>
!k = tensor<2048x4096xbf16, #compound.dims<M, K>>
!w = tensor<4096x4096xbf16, #compound.dims<K, D>>
func.func @f(%h: !k, %w: !w, %x: !x) -> (!x, !x) {
  %wide = compound.cast %x : !x -> !y
  %e = compound.map exp %wide : !y -> !y
  %narrow = compound.cast %e : !y -> !x
  %c = compound.contract %h, %w : !k, !w -> !y
  %y = compound.map add %wide, %c : !y, !y -> !y
  %z = compound.cast %y : !y -> !x
  func.return %narrow, %z : !x, !x
}
"""


def test_kernels_widen_what_they_read_themselves():
    """Casts to wider types are in each kernel that reads them, and in no other."""
    ops = elementary_ops(function(RESIDUAL))
    casts = free_to_recompute(ops)
    assert {op.results[0].name_hint for op in casts} == {"wide"}
    groups = list(map(set, priority_partition(ops, Lengths(), casts)))
    for group in groups:
        read = {value.owner for op in group for value in op.operands}
        assert casts & read == casts & group


def test_kernels_that_are_given_stay_together():
    """A product and what reads it begin as one kernel, which is merged with others."""
    ops = three_products()
    _, second, third = ops
    (group,) = priority_partition(ops, Lengths(), start=((second, third),))
    assert {second, third} <= {*group}


def test_a_product_of_large_tiles_adds_a_residual_in_subtiles():
    """128 x 256 results leave no room for all of a residual and what it gives."""
    module = run_passes(
        parse_module(RESIDUAL), f"{H200},sink-renames,fuse{{strategy=auto}}"
    )
    (func,) = compute_functions(module)
    plan = func.attributes[PLAN]
    assert isinstance(plan, StringAttr)
    assert "narrow: M=16 D=16 warps=8 stages=3 group=8 subtiles=4;" in plan.data


@exhaustive
def test_kernels_with_narrow_products_recompute_their_statistics(
    monkeypatch: pytest.MonkeyPatch,
):
    """Else the first kernel had to store the statistic, and no merge had a price."""
    p = Program({"M": 1024, "D": 1024, "F": 4096, "E": 64}, "bf16", "f32")
    h = rms_norm(p, p.argument("x", "MD"), "h")
    q = p.contract("q", h, p.argument("w1", "DF"), "MF")
    weights = softmax(p, q, "p", "F")
    y = p.contract("y", weights, p.argument("w2", "FD"), "MD")
    k = p.contract("k", h, p.argument("w3", "DE"), "ME")
    seconds, price = list[float](), Forms.launched

    def launched(self: Forms, needs: Dependences[Kernel]) -> float:
        seconds.append(price(self, needs))
        return seconds[-1]

    monkeypatch.setattr(Forms, "launched", launched)
    passes = "stream,sink-scales{scales=all},fuse{strategy=auto narrow=auto}"
    run_passes(parse_module(p.returning(y, k)), f"{H200},{passes}")
    assert max(seconds) < 1


def test_a_product_adds_its_residual_where_that_lets_a_norm_move_on():
    """Norm and residual are one kernel first; apart, the next product has the norm."""
    p = Program({"M": 128, "D": 512, "F": 2048}, "bf16", "f32")
    x = p.argument("x", "MD")
    a = p.contract("a", p.argument("b", "MF"), p.argument("w", "FD"), "MD")
    y = p.map("y", "add", x, a)
    wide = p.contract("wide", layer_norm(p, y, "h"), p.argument("w1", "DF"), "MF")
    e = p.map("e", "exp", wide)
    d = p.contract("d", e, p.argument("w2", "FD"), "MD")
    text = p.returning(p.map("z", "add", y, d))
    made = [["y"], ["e_bf16"], ["z_bf16"]]
    assert kernels(text, "strategy=auto narrow=auto") == made


def test_accelerators_have_no_priority_fusion():
    edge = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    with pytest.raises(PassFailedException, match="strategy=priority is for GPUs; use"):
        run_passes(
            parse_module(GRAPHS["two_rms_norms"]), f"{edge},fuse{{strategy=priority}}"
        )
