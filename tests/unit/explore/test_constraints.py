"""The file of constraints: what it says, and its mistakes."""

import pytest
from covering import one_of
from programs import graph_text
from semantics import comet_context, parse_module, run_passes
from xdsl.utils.exceptions import PassFailedException

from comet.api.exploring import explore
from comet.api.question import Question
from comet.api.source import Source
from comet.dialects.schedule.attributes import BindingKind
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore.constraints import Constraints, read_constraints
from comet.passes.explore.meets import unmet
from comet.passes.explore.quick import priced
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.state import CONSTRAINED
from comet.passes.pipeline import run_settled
from comet.passes.schedule.bind import KINDS, BindPass
from comet.passes.search import Goal
from comet.passes.sharding.dim_axes import parse_dims
from comet.tools.diagnostics import CometError
from comet.yaml_file import FileFormatError


def test_constraints_read():
    text = "dim: ['M:cx,cy', '']\nstream: [true]\nchunks: root\nkind: gather\nat: OB\n"
    text += "split: true\n"
    found = read_constraints(text, "c.yaml")
    assert found.dim == (parse_dims(["M:cx", "cy"]), ())
    assert found.split
    assert read_constraints("parts: all", "c.yaml").parts == "all"
    assert (found.stream, found.chunks) == ((True,), ("root",))
    assert (found.kind, found.at, found.strategy) == (("gather",), ("OB",), None)
    assert read_constraints("bindings: all", "c.yaml").bindings == KINDS
    one = read_constraints("bindings: [pipeline]", "c.yaml").bindings
    assert one == (BindingKind.PIPELINE,)
    assert read_constraints("", "c.yaml") == Constraints()
    twice = read_constraints("strategy: [full, none, full]\ndim: [N, 'N']", "c.yaml")
    assert twice == read_constraints("strategy: [full, none]\ndim: N", "c.yaml")


FEW = "strategy: full\nstream: false\ndim: [N, '']\nkind: allreduce\n"


@one_of(4)
@pytest.mark.parametrize(
    "text",
    [
        "strategy: [partial, none]\nstream: false\ndim: [M, '']",
        "strategy: partial\nat: OB\nchunks: root\nstream: true\ndim: ''",
        "dim: ['M:cx', 'N:kx']\nloops: separate\nat: all\nstream: false",
        f"{FEW}bindings: [pipeline, parallel]",
        f"{FEW}factors: 'y_dram: M=2'",
        f"{FEW}bindings: pipeline\nfactors: 'c_gb: M=2; y_gb: M=2'\nloops: separate",
        f"{FEW}factors: 'y_dram: M=2'\npad: 'M=16'",
    ],
)
def test_a_search_starts_from_the_quick_one_among_what_constraints_leave(text: str):
    module = run_passes(
        parse_module(graph_text("gemm_softmax", (8, 8, 32))),
        'attach-hardware{path="samples/hardware/edge.yaml"}',
    )
    limits, ctx = read_constraints(text, "c.yaml"), comet_context()
    found = StructureSpace(ctx, module, Goal(), limits).default()
    assert found is not None
    assert unmet(found.result, limits, ctx, module) is None
    *passes, estimate, _ = found.result
    pipeline = (*passes, LowerToCometPass("paper"), estimate)
    mapped = module.clone()
    run_settled(pipeline, ctx, mapped)
    assert priced((), mapped).cost.latency == pytest.approx(found.cost.latency)
    bound = [each.bodies for each in passes if isinstance(each, BindPass)]
    assert any(bound) == ("pipeline" in text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b", "c.yaml:1: there is no constraint 'a'; known: mesh, dim, split"),
        ("- b", "c.yaml:1: constraints are a map with the keys mesh, dim"),
        ("at: {a: b}", "c.yaml:1: 'at' has a nested value; write a text"),
        ("stream: []", "c.yaml:1: 'stream' has an empty list; give it a value"),
        ("dim: []", "c.yaml:1: 'dim' has an empty list; give it a value"),
        (
            "bindings: none",
            "c.yaml:1: 'bindings': 'none' is none of sequential, pipeline, parallel, "
            "or all for all of these",
        ),
        ("\nstrategy: all", "c.yaml:2: 'strategy': 'all' is none of full, partial"),
        ("kind:\n- auto\n- rings", "c.yaml:3: 'kind': 'rings' is none of auto, "),
        ("dim: 'M:1'", "c.yaml:1: 'dim': the option 'dim' names dimensions"),
        ("parts: some", "c.yaml:1: 'parts': 'some' is none of largest, none, all"),
        ("pad: much", "c.yaml:1: 'pad': "),
        ("factors: 'M=2'", "c.yaml:1: 'factors': "),
        ("factors: 'p: M=2 warps=4'", "c.yaml:1: 'factors': 'p: M=2 warps=4' has laun"),
    ],
)
def test_mistakes_in_constraints(text: str, message: str):
    with pytest.raises(FileFormatError) as error:
        read_constraints(text, "c.yaml")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("at: L2", "'at': place-collectives: no axis of mesh @edge is at level L2"),
        ("dim: [N, Q]", "'dim': explore: there is no dimension Q to shard"),
        ("pad: Q=7", "'pad': pad: no value has the dimension Q"),
        ("factors: 'y_ob: Q=2'", "'factors': tile: plan entry 'y_ob: Q=2' names"),
        ("stream: true", "explore: the constraint 'stream' contradicts the program"),
    ],
)
def test_mistakes_that_depend_on_the_program_name_the_line(wrong: str, message: str):
    program = Source(graph_text("gemm", (8, 8, 32)), "in.mlir")
    hardware = Source.read("samples/hardware/edge.yaml")
    constraints = Source(f"strategy: full\n{wrong}\n", "c.yaml")
    with pytest.raises(CometError) as error:
        explore(Question(program, hardware, constraints))
    assert str(error.value).startswith(f"c.yaml:2: {message}")


def test_fixed_factors_that_divide_nothing_close_a_structure_unsearched():
    module = run_passes(
        parse_module(graph_text("gemm", (8, 8, 32))),
        'attach-hardware{path="samples/hardware/edge.yaml"}',
    )
    text = 'dim: N\nstrategy: full\nloops: shared\nfactors: "y_dram: M=3"\n'
    fixed = read_constraints(text, "c.yaml")
    search = Exploration(StructureSpace(comet_context(), module, Goal(), fixed))
    with pytest.raises(PassFailedException, match="in all of 1 structures"):
        search.run()
    assert search.closed_by == {CONSTRAINED: 1}
