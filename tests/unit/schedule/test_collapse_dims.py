"""`collapse-dims`: meaning, which dimensions may be one, the choice, and errors."""

from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_graphs import H200
from gpu_ranks import H200X8
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import check_all, emitted
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.collapse_dims import COLLAPSED
from comet.passes.schedule.plan_string import PLAN
from comet.passes.search import session


def heads() -> str:
    """Return rows of sequences times columns of heads, with a bias and a residual."""
    p = Program({"B": 3, "S": 7, "K": 10, "H": 3, "D": 5})
    x, w = p.argument("x", "BSK"), p.argument("w", "HDK")
    bias, residual = p.argument("bias", "HD"), p.argument("residual", "BSHD")
    y = p.map("biased", "add", p.contract("y", x, w, "BSHD"), bias)
    return p.returning(p.map("sum", "add", y, residual))


def gradient() -> str:
    """Return a product that sums over sequences and their tokens."""
    p = Program({"B": 3, "S": 37, "K": 10, "N": 21})
    x, g = p.argument("x", "BSK"), p.argument("g", "BSN")
    return p.returning(p.contract("w", x, g, "KN"))


def whole_rows() -> str:
    """Return a softmax over two dimensions of whole rows, with two sums."""
    p = Program({"M": 5, "H": 3, "D": 7})
    x = p.argument("x", "MHD")
    e = p.map("e", "exp", p.map("s", "sub", x, p.reduce("m", "max", x, "M")))
    return p.returning(p.map("p", "div", e, p.reduce("t", "add", e, "M")))


def eight_dims() -> str:
    """Return what is computed element by element of eight dimensions."""
    p = Program(dict(zip("ABCDEFGH", (2, 3, 1, 2, 3, 2, 1, 5), strict=True)))
    x, y = p.argument("x", "ABCDEFGH"), p.argument("y", "EFGH")
    return p.returning(p.map("z", "add", p.map("e", "exp", x), y))


def one_dim() -> str:
    """Return a vector's exponentials: nothing to collapse."""
    p = Program({"N": 37})
    return p.returning(p.map("e", "exp", p.argument("x", "N")))


def two_kernels() -> str:
    """Return two products, of which the second sums over heads of the first."""
    p = Program({"B": 2, "S": 19, "K": 20, "H": 3, "D": 5, "N": 24})
    x, w = p.argument("x", "BSK"), p.argument("w", "HDK")
    y = p.contract("y", x, w, "BSHD")
    return p.returning(p.contract("z", y, p.argument("v", "HDN"), "BSN"))


CASES: dict[str, tuple[Callable[[], str], str]] = {
    "heads": (heads, "sum: B S, H D"),
    "gradient": (gradient, "w: B S"),
    "whole rows": (whole_rows, "p: H D"),
    "eight dims": (eight_dims, "z: A B C D, E F G H"),
    "one dim": (one_dim, "none"),
    "two kernels": (two_kernels, "y: B S, H D; z: B S, H D"),
}


def fused(text: str, options: str = "") -> ModuleOp:
    """Return a kernel of each product, after `collapse-dims` with some options."""
    strategy = "none" if text.count("contract") > 1 else "partial"
    passes = f"{H200},fuse{{strategy={strategy}}},collapse-dims{options}"
    return run_passes(parse_module(text), passes)


def note(module: ModuleOp, name: str) -> str:
    """Return the text that the only function has as an attribute."""
    (func,) = compute_functions(module)
    found = func.attributes[name]
    assert isinstance(found, StringAttr)
    return found.data


@pytest.mark.parametrize("name", CASES)
def test_the_meaning_stays(name: str):
    make, collapsed = CASES[name]
    before, after = fused(make(), "{dims=none}"), fused(make(), "{dims=all}")
    assert note(after, COLLAPSED) == collapsed
    assert_same_meaning(before, after, "main")
    assert_same_meaning(before, run_passes(after, "tile"), "main")


def test_kernels_compute_it(tmp_path: Path):
    pipeline = f"{H200},triton-distributed{{collapse=all}}"
    modules = {name: emitted(make(), pipeline) for name, (make, _) in CASES.items()}
    assert "BLOCK_BS" in modules["heads"]
    failed = {n: r for n, r in check_all(modules, tmp_path).items() if not r["ok"]}
    assert failed == {}


def test_what_was_split_is_not_merged_again():
    """The second kernel reads what the first one stores, without a view."""
    module = fused(two_kernels(), "{dims=all}")
    first, second = (op for op in module.walk() if isinstance(op, SpatialOp))
    assert first.outs[0] in second.ins


def test_loops_over_both_are_one():
    module = fused(gradient(), "{dims=all}")
    (loop,) = (op for op in module.walk() if isinstance(op, TemporalOp))
    assert dict(loop.factors) == {"BS": 1}
    assert loop.node_name == "w_bs"


def test_a_plan_that_names_them_together_makes_them_one():
    """The plan of the result, given as factors, gives the same kernels."""
    compile_ = f"{H200},triton-distributed{{collapse=all to=dataflow}}"
    first = run_passes(parse_module(two_kernels()), compile_)
    plan = note(first, PLAN)
    given = f'{H200},triton-distributed{{factors="{plan}" to=dataflow}}'
    assert str(run_passes(parse_module(two_kernels()), given)) == str(first)
    sizes = 'factors="w: BLOCK_K=16 BLOCK_N=16; w_bs: BLOCK_BS=32"'
    second = run_passes(
        parse_module(gradient()), f"{H200},triton-distributed{{{sizes} to=dataflow}}"
    )
    assert note(second, PLAN).endswith("w_bs: BS=4")


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ({"B": 32, "S": 77, "K": 2048, "N": 2048}, "y: B S"),
        ({"B": 4, "S": 1024, "K": 2048, "N": 2048}, "none"),
    ],
)
def test_full_blocks_are_faster(sizes: dict[str, int], chosen: str):
    """77 rows are padded to 128; 1,024 are full blocks as they are."""
    p = Program(sizes, "f16", "f32")
    y = p.contract("y", p.argument("x", "BSK"), p.argument("w", "NK"), "BSN")
    with session() as found:
        module = fused(p.returning(y))
    assert note(module, COLLAPSED).replace("y_f16", "y") == chosen
    tables = [choice for choice in found.choices if choice.name == "dimensions"]
    labels = [[row.label for row in choice.rows] for choice in tables]
    assert labels == ([["as they are", "B S"]] if chosen != "none" else [])


def test_kernels_that_merge_partial_sums_agree_on_dimensions():
    """A split product, and the kernel that adds the parts, may be one launch."""
    p = Program({"B": 3, "S": 21, "K": 4096, "N": 48}, "f16", "f32")
    text = p.returning(
        p.contract("y", p.argument("x", "BSK"), p.argument("w", "NK"), "BSN")
    )
    module = run_passes(
        parse_module(text), f'{H200},triton-distributed{{split="K=8" to=dataflow}}'
    )
    assert note(module, COLLAPSED) == "none"
    assert note(module, "comet.merge") != "launch"


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ("x: B S", "dims names the kernel @x; there are @w"),
        ("w: K N", "K N of @w cannot be one dimension; B S can be"),
        ("w: S B", "S B of @w cannot be one dimension; B S can be"),
        ("w: B S; w: K N", "dims names @w twice; write its dimensions once"),
        ("w: B S, S K", "'w: B S, S K' names a dimension twice"),
        ("w: B", "'w: B' is not of the form KERNEL: DIM DIM .."),
        ("B S", "'B S' is not of the form KERNEL: DIM DIM .."),
    ],
)
def test_errors(dims: str, message: str):
    with pytest.raises(PassFailedException, match="collapse-dims: ") as error:
        fused(gradient(), f'{{dims="{dims}"}}')
    assert message in str(error.value)


def test_nothing_else_can_be_one():
    with pytest.raises(PassFailedException, match="one dimension; none are next to"):
        fused(one_dim(), '{dims="e: N K"}')


def test_kernels_of_several_ranks_keep_their_dimensions():
    passes = f"{H200X8},triton-distributed{{ranks=2 dim=B to=dataflow}}"
    assert COLLAPSED not in str(run_passes(parse_module(gradient()), passes))
    spread = f"{H200X8},distribute{{dim=K axes=rank}},insert-collectives,fuse"
    spread = run_passes(parse_module(gradient()), spread)
    assert note(run_passes(spread, "collapse-dims"), COLLAPSED) == "none"
    with pytest.raises(PassFailedException, match="several ranks keep their dimens"):
        run_passes(spread, 'collapse-dims{dims="w: B S"}')
