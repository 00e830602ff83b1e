"""`bind`: every node and collective but the last of a body, and what it rejects."""

from dataclasses import replace

import pytest
from accelerators import attached
from covering import one_of
from semantics import assert_same_meaning, comet_context, parse_module, run_passes
from tile_trees import fused, ops_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import CastOp
from comet.dialects.schedule.attributes import BindingAttr, BindingKind
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.pipeline import run_settled
from comet.passes.schedule.bind import BindPass, kinds_of

X = "tensor<4x8xf16, #compound.dims<M, N>>"
INDEPENDENT = """
func.func @main(%x: X, %y: X) -> (X, X) {
  %e = compound.map exp %x : X -> X
  %s = compound.map sqrt %y : X -> X
  func.return %e, %s : X, X
}
""".replace("X", X)


def bindings(module: ModuleOp) -> list[list[str]]:
    """Return the bindings of each body with several siblings, `-` for none."""
    found: list[list[str]] = []
    for node in ops_of(module, NodeOp):
        kinds = [op.attributes.get("schedule.bind") for op in siblings(node)]
        if len(kinds) > 1:
            found.append(
                [str(k.data) if isinstance(k, BindingAttr) else "-" for k in kinds]
            )
    return found


def siblings(node: NodeOp) -> list[NodeOp | CollectiveOp]:
    ops = node.body.block.ops
    return [op for op in ops if isinstance(op, NodeOp | CollectiveOp)]


@one_of(2)
@pytest.mark.parametrize("kind", ["sequential", "pipeline"])
@pytest.mark.parametrize("strategy", ["none", "partial", "full"])
def test_all_but_the_last_sibling(strategy: str, kind: str):
    before = fused(strategy)
    after = run_passes(before, f"bind{{kind={kind}}}")
    found = bindings(after)
    assert found == [[kind] * (len(body) - 1) + ["-"] for body in found]
    assert any(len(body) > 1 for body in found)
    assert_same_meaning(before, after, "main")


def test_a_second_run_replaces_the_kind():
    once = run_passes(fused(), "bind{kind=pipeline}")
    again = run_passes(once, "bind{kind=sequential}")
    assert str(again) == str(run_passes(fused(), "bind"))


def test_the_binding_of_a_node_whose_next_sibling_is_dead_says_nothing():
    tree = run_passes(parse_module(INDEPENDENT), f"{attached(1)},fuse{{strategy=full}}")
    module = run_passes(tree, "tile,bind")
    bodies = [siblings(node) for node in ops_of(module, NodeOp)]
    first, last = next(body for body in bodies if len(body) == 2)
    last.results[0].replace_all_uses_with(first.results[0])
    after = run_passes(module, "canonicalize")
    assert ["sequential"] == [
        str(binding.data)
        for node in ops_of(after, NodeOp)
        if isinstance(binding := node.attributes.get("schedule.bind"), BindingAttr)
    ]
    assert_same_meaning(module, after, "main")


def test_independent_siblings_run_in_parallel():
    pipeline = f"{attached(1)},fuse{{strategy=full}},bind{{kind=parallel}}"
    assert ["parallel", "-"] in bindings(
        run_passes(parse_module(INDEPENDENT), pipeline)
    )


def test_auto_takes_only_what_the_files_can_say():
    """Bound parallel, the two are cheapest, but the COMET tool would drop them."""
    pipeline = f"{attached(16)},fuse{{strategy=none}},tile,bind{{kind=auto}}"
    bound = run_passes(parse_module(INDEPENDENT), pipeline)
    kinds = [op.attributes.get("schedule.bind") for op in ops_of(bound, NodeOp)]
    assert BindingAttr(BindingKind.PARALLEL) not in kinds
    assert BindingAttr(BindingKind.SEQUENTIAL) in kinds
    run_passes(bound, "lower-to-comet")


def test_bodies_may_have_kinds_of_their_own():
    pipeline = f"{attached(1)},fuse{{strategy=none}},tile"
    tree = run_passes(parse_module(INDEPENDENT), pipeline)
    after = run_passes(tree, 'bind{kind=pipeline bodies="@main: parallel"}')
    outermost = [op for op in ops_of(after, NodeOp) if op.parent_op() is not None]
    kinds = {str(op.attributes.get("schedule.bind")) for op in outermost}
    assert str(BindingAttr(BindingKind.PARALLEL)) in kinds


def three(operand: str, returned: str) -> ModuleOp:
    """Return the nests of three ops, the last of which reads `operand`."""
    last = f"%a = compound.map add {operand}, %y : {X}, {X} -> {X}"
    text = INDEPENDENT.replace("sqrt", "exp")
    text = text.replace("func.return %e, %s", f"{last}\n  func.return {returned}")
    pipeline = f"{attached(1)},fuse{{strategy=none}},tile"
    return run_passes(parse_module(text), pipeline)


def test_each_child_may_be_bound_by_a_kind_of_its_own():
    tree = three("%s", "%e, %a")
    after = run_passes(tree, 'bind{bodies="@main: parallel pipeline"}')
    (func,) = compute_functions(after)
    assert kinds_of(func)["@main"] == (BindingKind.PARALLEL, BindingKind.PIPELINE)
    settled = BindPass(kind="auto").settled(after)
    assert settled.bodies is not None
    assert "@main: parallel pipeline" in settled.bodies
    assert_same_meaning(tree, after, "main")


def test_what_runs_in_parallel_uses_nothing_of_it_further_on():
    with pytest.raises(PassFailedException, match="they cannot run in parallel"):
        run_passes(three("%e", "%s, %a"), 'bind{bodies="@main: parallel"}')


def test_what_runs_in_parallel_uses_nothing_of_it_through_other_ops():
    tree = three("%s", "%e, %a")
    (func,) = compute_functions(tree)
    first, *_, last = (op for op in func.body.block.ops if isinstance(op, NodeOp))
    cast = CastOp(first.results[0], first.results[0].type)
    Rewriter.insert_op(cast, InsertPoint.after(first))
    run_passes(tree, 'bind{bodies="@main: parallel pipeline"}')
    last.operands[0] = cast.result
    with pytest.raises(PassFailedException, match="they cannot run in parallel"):
        run_passes(tree, 'bind{bodies="@main: parallel pipeline"}')


def test_the_kinds_that_auto_takes_can_be_written():
    """Of each body; a pass with these makes the same choices without a search."""
    pipeline = f"{attached(16)},fuse{{strategy=none}},tile"
    tree = run_passes(parse_module(INDEPENDENT), pipeline)
    chosen = tree.clone()
    (settled,) = run_settled([BindPass(kind="auto")], comet_context(), chosen)
    assert isinstance(settled, BindPass)
    assert settled.kind == "sequential"
    again = tree.clone()
    settled.apply(comet_context(), again)
    assert str(again) == str(chosen)
    mixed = BindPass(bodies="@main: pipeline")
    mixed.apply(comet_context(), again)
    read = replace(mixed, kind="auto", bodies=None).settled(again)
    assert read in (mixed, BindPass(kind="pipeline"))


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ("@main", "is not of the form NODE: KIND with one of sequential, pipeline"),
        ("@main: sharing", "is not of the form NODE: KIND"),
        ("@main: pipeline; @main: pipeline", "each node once"),
        ("@main: pipeline pipeline pipeline", "3 kinds in `bodies` bind 2 children"),
        ("nothing: pipeline", "names no node with several children; there are @main"),
    ],
)
def test_wrong_bodies(bodies: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(
            parse_module(INDEPENDENT),
            f'{attached(1)},fuse{{strategy=none}},tile,bind{{bodies="{bodies}"}}',
        )


def test_auto_has_no_other_kinds():
    with pytest.raises(PassFailedException, match="kind=auto chooses for all bodies"):
        BindPass(kind="auto", bodies="@main: pipeline")
