"""Folds over a dimension that clusters share: all-reduces merge their partials."""

import pytest
from accelerators import attached
from covering import fraction
from named_ops import NAMED_OPS
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from comet.codegen.comet.tool_rules import check_tool
from comet.dialects.collective import AllReduceOp
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of

OPS = {op.title: op for op in NAMED_OPS}
HEADS = {"B": 1, "H": 2, "M": 16, "N": 32, "D": 8, "E": 8}
ROWS = {"M": 16, "K": 8, "N": 32}
CASES = [("attention", HEADS), ("gemm_softmax", ROWS), ("gemm_layernorm", ROWS)]
WHOLE, ROW = ("N:cx,cy;M:kx,ky", "N:cx;M:cy,kx,ky")


def spmd(dims: str, partials: str = "{partials=reduce}") -> str:
    """Return the passes down to the SPMD level, with `dims` over the mesh axes."""
    spread = ",".join(
        f"distribute{{dim={dim} axes={axes}}}"
        for dim, axes in (each.split(":") for each in dims.split(";"))
    )
    return (
        f"{attached(16)},decompose{{accumulator=input}},stream,{spread},"
        f"insert-collectives{partials},place-collectives"
    )


@pytest.mark.parametrize(
    ("case", "dims"), fraction(CASES, [WHOLE, ROW]), ids=lambda part: str(part)[:14]
)
def test_all_reduces_merge_partials(case: tuple[str, dict[str, int]], dims: str):
    title, sizes = case
    before = parse_module(OPS[title].text(sizes))
    after = run_passes(before.clone(), spmd(dims))
    assert [op for op in after.walk() if isinstance(op, AllReduceOp)]
    assert_same_meaning(before, after, "main")
    nests = run_passes(after, "fuse{strategy=full}")
    assert_same_meaning(before, nests, "main")
    if title != "gemm_layernorm":  # the COMET files do not hold its counts
        assert_same_meaning(before, run_passes(nests, "tile"), "main")


def lowered(option: str = "{model=paper}") -> ModuleOp:
    """Return attention as files for the model `paper`."""
    steps = 'fuse{strategy=full},tile{factors="m_n: N=4"},annotate-cost'
    return run_passes(
        parse_module(OPS["attention"].text(HEADS)),
        f"{spmd(WHOLE)},{steps},lower-to-comet{option}",
    )


def test_the_model_prices_what_the_tool_cannot():
    module = lowered()
    (mapping,) = (op for op in module.walk() if isinstance(op, MappingOp))
    figures = estimate_of(mapping)
    assert figures is not None
    assert figures.latency > 0
    with pytest.raises(DiagnosticException, match="cannot price a node that only"):
        check_tool(module)
    with pytest.raises(PassFailedException, match="cannot price a node that only"):
        lowered("")


@pytest.mark.parametrize(
    ("dims", "strategy", "reason"),
    [
        ("N:kx,ky", "full", "merges partials of clusters by all-reduces only"),
        (WHOLE, "none", "another nest merges these partials; use strategy=full"),
        (
            WHOLE,
            "isolate_contractions",
            "another nest merges these partials; use strategy=full",
        ),
    ],
)
def test_partials_that_no_nest_merges_are_rejected(
    dims: str, strategy: str, reason: str
):
    module = parse_module(OPS["attention"].text(HEADS))
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, f"{spmd(dims)},fuse{{strategy={strategy}}}")


def test_without_the_option_an_all_gather_and_a_fold_merge_them():
    before = parse_module(OPS["attention"].text(HEADS))
    gathered = run_passes(before.clone(), spmd(WHOLE, ""))
    assert not [op for op in gathered.walk() if isinstance(op, AllReduceOp)]
    assert_same_meaning(before, gathered, "main")
