"""`comet-accelerator` on random shapes and legal factors: files that break no rule."""

from itertools import product

import pytest
from comet_rules import check
from covering import covering, one_of
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.comet import write_files
from comet.dialects.arch import attached_system
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile.finest import finest
from comet.passes.schedule.tile.moves import some_divisors
from comet.passes.schedule.tile.template import factors_of, make_template

EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 8, 12, 16, 32, 48, 64, 80])
SHAPES = st.tuples(EXTENTS, EXTENTS, st.sampled_from([1, 6, 7, 16, 32, 48, 96]))
OPS = ("gemm_softmax", "gemm_layernorm")
STRATEGIES = ("none", "isolate_contractions", "partial", "full")
AXES = ("cx", "cy", "kx", "ky")


def fused(machine: str, op: str, strategy: str, sizes: tuple[int, ...]) -> ModuleOp:
    """Return a tile tree without factors, N over the axes that divide it."""
    axes, n = AXES if machine == "edge" else AXES[:2], sizes[2]
    while axes and n % {"edge": 2, "cloud": 4}[machine] ** len(axes):
        axes = axes[:-1]
    spread = f"distribute{{dim=N axes={','.join(axes)}}}," if axes else ""
    pipeline = (
        f'attach-hardware{{path="samples/hardware/{machine}.yaml"}},'
        f"decompose{{accumulator=input}},{spread}insert-collectives,"
        f"place-collectives,fuse{{strategy={strategy}}}"
    )
    return run_passes(parse_module(graph_text(op, sizes)), pipeline)


def random_plan(data: st.DataObject, module: ModuleOp) -> str:
    """Return the plan of the finest tiles, coarsened at random to other divisors."""
    (func,) = compute_functions(module)
    template = make_template(func, attached_system(module))
    plan = finest(template)
    chosen = {
        (key, dim): data.draw(st.sampled_from(some_divisors(factor)))
        for (key, dim), factor in factors_of(plan).items()
    }
    drawn = {
        key: tuple((dim, chosen[key, dim]) for dim, _ in rows)
        for key, rows in plan.items()
    }
    return format_plan(template.entries(drawn))


@one_of(2)
@pytest.mark.parametrize(
    ("machine", "op", "strategy"),
    covering(product(("edge", "cloud"), OPS, STRATEGIES), 1),
)
@settings(max_examples=2)
@given(sizes=SHAPES, data=st.data())
def test_files_of_random_mappings(
    machine: str,
    op: str,
    strategy: str,
    sizes: tuple[int, int, int],
    data: st.DataObject,
):
    tree = fused(machine, op, strategy, sizes)
    plan = random_plan(data, tree)
    tiled = run_passes(tree, f'tile{{factors="{plan}"}},bind')
    assert_same_meaning(tree, tiled, "main")
    assert check(write_files(run_passes(tiled, "lower-to-comet"))) == []
