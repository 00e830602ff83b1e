"""Priority fusion: kernels of a graph, merged in the order of what that saves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import isinf

import pytest
from covering import exhaustive, one_of
from gpu_graphs import H200
from gpu_ranks import MI300X8
from graph_text import Program
from paths import ROOT
from sample_blocks import BLOCKS
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import (
    GRAPHS,
    layer_norm,
    llama_block,
    norm_and_mlp,
    rms_norm,
    softmax,
)
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.from_ir.products import summarize_products
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp, View
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.dataflow.launches import Needs
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import (
    Group,
    Kernel,
    Values,
    disagrees,
    elementary_ops,
)
from comet.passes.schedule.fuse.gpu.plan import loop_nests, plan_form, plan_forms
from comet.passes.schedule.fuse.gpu.priority import priority_partition
from comet.passes.schedule.fuse.gpu.recompute import (
    cheap_to_recompute,
    free_to_recompute,
)
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.fuse.gpu.trial import Trials, standalone_function
from comet.passes.schedule.fuse.strategy import KERNELS, Strategy
from comet.passes.schedule.plan_string import PLAN
from comet.passes.schedule.tile.gpu.space import (
    DOT_DEPTHS,
    SHORT_DEPTHS,
    block_sizes,
    launches_that_fit,
    may_have_tiling,
    unpadded_vector,
    wasted_product,
)
from comet.passes.schedule.tile_tree import loops_below

WIDE = {"M": 128, "N": 128, "D": 1024, "H": 8, "E": 128, "G": 128, "F": 2816}
FORMS = (Strategy("full", full_rows=True), Strategy("partial"))


def function(text: str) -> FuncOp:
    (found,) = compute_functions(parse_module(text))
    return found


def kernels(text: str, options: str = "strategy=priority") -> list[list[str | None]]:
    """Return the names of what each kernel of a graph stores."""
    module = run_passes(
        parse_module(text), f"{H200},sink-renames,stream,fuse{{{options}}}"
    )
    nodes = [op for op in module.walk() if isinstance(op, SpatialOp)]
    return [[value.name_hint for value in node.outs] for node in nodes]


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

    def launched(self, needs: Needs[Kernel]) -> float:
        return sum(self.seconds(*kernel) for kernel in needs.kernels)


class Squares(Lengths):
    """The same with all kernels that read of none as one launch, and their squares."""

    def launched(self, needs: Needs[Kernel]) -> float:
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
    assert priority_partition(ops, Pairs(ops)) == ((first,), (second, third))
    eager = priority_partition(ops, Pairs(ops), eager=True)
    assert eager == ((first, second), (third,))


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
    parts = priority_partition(ops, Lengths())
    assert sorted(len(part) for part in parts if isinstance(part, tuple)) == [2, 3]


def test_kernels_around_a_view_are_not_merged():
    """The value goes from %h through a rename to %s, which also reads %h itself."""
    p = Program({"M": 4, "N": 4, "D": 8})
    h = p.map("h", "exp", p.argument("x", "MD"))
    s = p.contract("s", h, p.rename("keys", h, "ND"), "MN")
    assert kernels(p.returning(s)) == [["h"], ["s"]]


def windows(func: FuncOp) -> Iterator[Kernel]:
    """Yield successive ops of a graph, and what others read of them."""
    ops = elementary_ops(func)
    for size, start in product((1, 2, 3, 6, 9), range(0, len(ops), 2)):
        group = ops[start : start + size]
        legal = not any(isinstance(op, View) for op in group)
        if legal and not any(disagrees(group, (op,)) for op in group):
            inside = set(group)
            results = (result for op in group for result in op.results)
            uses = {r: {use.operation for use in r.uses} for r in results}
            outs = tuple(r for r, users in uses.items() if not users <= inside)
            yield group, outs


def block(sizes: Mapping[str, int]) -> ModuleOp:
    text = llama_block({**WIDE, **sizes}, "bf16")
    return simplified(text, f"{H200},sink-renames,stream")


def simplified(text: str, pipeline: str) -> ModuleOp:
    module = run_passes(parse_module(text), pipeline)
    for func in compute_functions(module):
        simplify(func)
    return module


@one_of(2)
@pytest.mark.parametrize(("tokens", "width"), [(1, 64), (128, 64), (128, 200)])
def test_the_lower_bound_of_each_form_is_below_its_time(tokens: int, width: int):
    """Blocks of 200 elements are longer than their rows, and prices count them so."""
    module = block({"M": tokens, "N": tokens, "D": width})
    assert check_bounds(module, windows(only(module))) > 40


def only(module: ModuleOp) -> FuncOp:
    (func,) = compute_functions(module)
    return func


def check_bounds(module: ModuleOp, kernels: Iterable[Kernel]) -> int:
    """Check the lower bounds of all forms of kernels; return how many there are."""
    trials = Trials(attached_system(module))
    forms, checked = Forms(trials, FORMS), 0
    for group, outs in kernels:
        assert forms.roughly(group, outs) <= forms.least(group, outs)
        for nest in loop_nests(FORMS, group):
            seconds = trials.seconds(plan_form(nest, group, outs))
            assert forms.least_of(nest, group, outs) <= seconds
            checked += 1
    return checked


LLAMA, VIT = BLOCKS["llama"], BLOCKS["vit"]


@one_of(2)
@pytest.mark.parametrize(
    ("text", "pipeline", "first"),
    [
        pytest.param(
            LLAMA.text("llama", {**LLAMA.wide, "M": 128, "N": 128}, "bf16"),
            f"{H200},lower-views,sink-renames",
            "scaled",
            id="rows that are stored whole, though a mask ends them",
        ),
        pytest.param(
            VIT.text("vit", VIT.tiny),
            f"{MI300X8},lower-views,sink-renames,stream",
            "weights_m",
            id="loops of one trip that share their waits",
        ),
    ],
)
def test_lower_bounds_of_kernels_that_had_too_high_ones(
    text: str, pipeline: str, first: str
):
    module = simplified(text, pipeline)
    kernels = (
        (group, outs)
        for group, outs in windows(only(module))
        if group[0].results[0].name_hint == first
    )
    assert check_bounds(module, kernels) > 4


def softmax_of_products(rows: int, columns: int) -> str:
    """A softmax of products with large results."""
    p = Program({"M": rows, "N": columns, "K": 64}, "f16", "f32")
    s = p.contract("s", p.argument("q", "MK"), p.argument("k", "NK"), "MN")
    shifted = p.map(
        "shifted", "exp", p.map("less", "sub", s, p.reduce("m", "max", s, "N"))
    )
    return p.returning(p.map("w", "div", shifted, p.reduce("l", "add", shifted, "N")))


def weighted(rows: int, terms: int) -> str:
    """Few programs with a long loop, in which lanes compute what a product reads."""
    p = Program({"M": rows, "N": terms, "E": 64}, "f16", "f32")
    w = p.map("w", "exp", p.argument("x", "MN"))
    return p.returning(p.contract("o", w, p.argument("v", "NE"), "ME"))


@pytest.mark.parametrize(
    ("text", "form", "part"),
    [
        pytest.param(
            softmax_of_products(8192, 8192),
            Strategy("partial", spill=True),
            0.5,
            id="spilled tiles",
        ),
        pytest.param(
            weighted(16, 1 << 16), Strategy("partial"), 0.9, id="dependent loads"
        ),
    ],
)
def test_the_lower_bound_of_a_form_is_near_its_time(
    text: str, form: Strategy, part: float
):
    module = simplified(text, H200)
    forms = Forms(trials := Trials(attached_system(module)), (form,))
    ops = elementary_ops(only(module))
    kernel = ops, tuple(ops[-1].results)
    (nest,) = loop_nests((form,), ops)
    seconds = trials.seconds(plan_form(nest, *kernel))
    assert part * seconds < forms.least_of(nest, *kernel) <= seconds


def test_the_cheapest_form_is_found_without_a_price_of_each():
    module = block({"M": 128, "N": 128})
    (func,) = compute_functions(module)
    trials, all_trials = (Trials(attached_system(module)) for _ in range(2))
    forms = Forms(trials, FORMS)
    for group, outs in windows(func):
        every = [plan_form(nest, group, outs) for nest in loop_nests(FORMS, group)]
        best = min(every, key=all_trials.seconds)
        assert forms.cheapest(group, outs) == best
    assert trials.tried < all_trials.tried


def test_the_lower_bound_of_products_is_near_their_time():
    """It counts repeated loads and rounds, and is infinite for rows that do not fit."""
    module = block({"M": 2048, "N": 2048, "D": 4096})
    (func,) = compute_functions(module)
    forms, found = Forms(Trials(attached_system(module)), FORMS), list[float]()
    for group, outs in windows(func):
        if len(group) == 1 and isinstance(group[0], ContractOp):
            found.append(forms.least(group, outs) / forms.seconds(group, outs))
    assert len(found) > 2
    assert min(found) > 0.8
    never = [forms.seconds(*k) for k in windows(func) if isinf(forms.least(*k))]
    assert never
    assert all(map(isinf, never))


def test_products_rule_out_only_kernels_without_tilings():
    """A kernel is not built if its products alone show that none of its tiles fit."""
    module = block({"M": 2048, "N": 2048, "D": 4096})
    (func,) = compute_functions(module)
    system = attached_system(module)
    gpu, levels = device_of(system), gpu_levels(system)
    ruled_out = 0
    for group, outs in windows(func):
        for kernel in plan_forms(FORMS, group, outs):
            grid = tuple(loop.dim for loop in kernel.loops)
            products = summarize_products(group, grid, tuple(loops_below(kernel)))
            if not may_have_tiling(products, gpu):
                (node,) = grid_nodes(standalone_function(kernel, levels))
                assert not some_tiling_fits(summarize(node, levels, gpu), gpu)
                ruled_out += 1
    assert ruled_out > 4


def some_tiling_fits(summary: KernelSummary, gpu: Device) -> bool:
    """Return whether one of all tilings fits, without asking the smallest blocks."""
    tried = (
        {dim: block_sizes(summary, dim, depths) for dim in summary.extents}
        for depths in (None, DOT_DEPTHS, SHORT_DEPTHS)
    )
    return not unpadded_vector(summary) and any(
        not wasted_product(summary, sizes)
        and launches_that_fit(summary, sizes, {}, gpu) is not None
        for sizes in tried
    )


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
    parts = priority_partition(ops, Lengths(), again)
    groups = [set(part) for part in parts if isinstance(part, tuple)]
    read = {v.owner for part in groups for op in part - again for v in op.operands}
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
    parts = priority_partition(ops, Lengths(), casts)
    groups = [set(part) for part in parts if isinstance(part, tuple)]
    for group in groups:
        read = {value.owner for op in group for value in op.operands}
        assert casts & read == casts & group


def test_kernels_that_are_given_stay_together():
    """A product and what reads it begin as one kernel, which is merged with others."""
    ops = three_products()
    _, second, third = ops
    parts = priority_partition(ops, Lengths(), start=((second, third),))
    assert any(isinstance(part, tuple) and {second, third} <= {*part} for part in parts)
    assert len(parts) == 1


def test_a_product_of_large_tiles_adds_a_narrow_residual():
    """128 x 256 results leave room for a residual of bf16, not for one in f32."""
    module = run_passes(
        parse_module(RESIDUAL), f"{H200},sink-renames,fuse{{strategy=auto}}"
    )
    (func,) = compute_functions(module)
    said, plan = func.attributes[KERNELS], func.attributes[PLAN]
    assert isinstance(said, StringAttr)
    assert isinstance(plan, StringAttr)
    assert said.data == "narrow; z"
    assert "z: M=16 D=16 warps=8" in plan.data


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

    def launched(self: Forms, needs: Needs[Kernel]) -> float:
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


def test_the_chosen_kernels_can_be_given():
    text = norm_and_mlp(WIDE, "bf16")
    start = f"{H200},sink-renames,stream"
    chosen = run_passes(parse_module(text), f"{start},fuse{{strategy=priority}}")
    (func,) = compute_functions(chosen)
    said = func.attributes[KERNELS]
    assert isinstance(said, StringAttr)
    again = run_passes(parse_module(text), f'{start},fuse{{kernels="{said.data}"}}')
    (other,) = compute_functions(again)
    assert [str(op) for op in func.body.block.ops] == [
        str(op) for op in other.body.block.ops
    ]
    assert func.attributes[PLAN] == other.attributes[PLAN]


@one_of(2)
@pytest.mark.parametrize("given", ["z", "h; z", "h; gated; z", "h_scale gate; z"])
def test_given_kernels_recompute_what_none_stores(given: str):
    before = parse_module(norm_and_mlp())
    after = run_passes(before, f'{H200},stream,fuse{{kernels="{given}"}},tile')
    nodes = [op for op in after.walk() if isinstance(op, SpatialOp)]
    assert len(nodes) == given.count(";") + 1
    assert_same_meaning(before, after, "main")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("h; zz", "names %zz, which no op computes; values are called z and so on"),
        ("z; z", "stores %z twice; name it in one kernel"),
        ("h", "does not store %z, which is a result, or is renamed or sent; name it"),
        ("h_sq; h_mean h_sum z; h_scale", "has two that depend on each other; store a"),
    ],
)
def test_kernels_that_cannot_be_are_rejected(given: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(norm_and_mlp()), f'{H200},fuse{{kernels="{given}"}}')


def test_results_of_one_op_are_in_one_given_kernel():
    with pytest.raises(PassFailedException, match="%weights_l in two kernels, and one"):
        kernels(llama_block(), 'kernels="q k; v; weights_m; weights_l; z"')


def test_given_kernels_that_do_not_fit_are_rejected():
    """Scores, softmax and values of all heads at once: no tiles fit."""
    with pytest.raises(PassFailedException, match="more than fit beside"):
        kernels(llama_block(WIDE, "bf16"), 'kernels="q k v; z"')


def test_given_kernels_whose_products_are_no_dots_are_rejected():
    """Queries of R heads and keys of one: a program would take R by M rows."""
    p = Program({"M": 32, "D": 128, "K": 2, "R": 2, "E": 16})
    h = p.argument("h", "MD")
    q = p.contract("q", h, p.argument("wq", "DKRE"), "KRME")
    text = p.returning(q, p.contract("k", h, p.argument("wk", "DKE"), "KME"))
    with pytest.raises(PassFailedException, match=r"large enough for tl\.dot, but"):
        kernels(text, 'kernels="q k"')


def test_given_kernels_with_a_vector_that_no_dot_can_pad_are_rejected():
    """The token of a sequence, and the keys of each sequence."""
    p = Program({"B": 1, "D": 128, "N": 64, "R": 16, "G": 16}, "bf16", "f32")
    v = p.contract("v", p.argument("h", "BD"), p.argument("w", "DG"), "BG")
    rows, values = p.argument("u", "BRN"), p.argument("values", "BNG")
    text = p.returning(p.map("z", "mult", p.contract("y", rows, values, "BRG"), v))
    with pytest.raises(PassFailedException, match="a vector that cannot be padded"):
        kernels(text, 'kernels="z_bf16"')
    kernels(text, 'kernels="v; z_bf16"')


def test_accelerators_have_no_given_kernels():
    edge = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    with pytest.raises(PassFailedException, match=r"kernels=\.\. is for GPUs"):
        run_passes(parse_module(GRAPHS["two_rms_norms"]), f'{edge},fuse{{kernels="q"}}')
