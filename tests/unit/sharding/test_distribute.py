"""`distribute`: the annotations it writes, and what it rejects."""

import pytest
from programs import MESHES, graph_text, mesh_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.passes.sharding.shardings import sharding_of_op

PROGRAM = mesh_text(MESHES[4]) + graph_text("gemm_softmax", (7, 5, 13))


def shardings(module: ModuleOp) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the sharding of every annotated op, by op name (the last of a name)."""
    ops = (op for op in module.walk() if "collective.shard" in op.attributes)
    return {op.name: sharding_of_op(op) for op in ops}


def test_annotates_every_op_that_has_the_dimension():
    after = run_passes(parse_module(PROGRAM), "decompose,distribute{dim=K axes=cx,kx}")
    assert shardings(after) == {"compound.contract": {"K": ("cx", "kx")}}


def test_a_second_dimension_takes_other_axes():
    pipeline = "decompose,distribute{dim=N axes=cx},distribute{dim=M axes=ky,cy}"
    after = run_passes(parse_module(PROGRAM), pipeline)
    found = shardings(after)
    assert found["compound.contract"] == {"N": ("cx",), "M": ("ky", "cy")}
    assert found["compound.cast"] == {"N": ("cx",), "M": ("ky", "cy")}


@pytest.mark.parametrize("name", ["reduce", "compound.reduce"])
def test_only_ops_of_one_name(name: str):
    pipeline = f'decompose,distribute{{dim=N axes=cx op="{name}"}}'
    after = run_passes(parse_module(PROGRAM), pipeline)
    assert shardings(after) == {"compound.reduce": {"N": ("cx",)}}


def test_all_but_ops_of_one_name():
    pipeline = "decompose,distribute{dim=N axes=cx skip=contract}"
    found = shardings(run_passes(parse_module(PROGRAM), pipeline))
    assert found.keys() == {"compound.cast", "compound.map", "compound.reduce"}


def test_meaning_is_unchanged():
    before = run_passes(parse_module(PROGRAM), "decompose")
    after = run_passes(before, "distribute{dim=N axes=cx,cy,kx,ky}")
    assert_same_meaning(before, after, "main")


def test_the_reference_is_left_alone():
    after = run_passes(parse_module(PROGRAM), "decompose,distribute{dim=N axes=cx}")
    reference = list(after.ops)[-1]
    assert "comet.reference" in reference.attributes
    assert not any("collective.shard" in op.attributes for op in reference.walk())


def test_the_mesh_is_chosen_by_name():
    two = PROGRAM + "collective.mesh @other {rank = 3}\n"
    pipeline = "decompose,distribute{dim=N axes=rank mesh=other}"
    after = run_passes(parse_module(two), pipeline)
    assert shardings(after)["compound.reduce"] == {"N": ("rank",)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("dim=K axes=cx op=map", "no compound.map op of @main has the dimension K"),
        ("dim=K axes=cx skip=contract", "no other op of @main has the dimension K"),
        ("dim=N axes", "no mesh axis is named"),
        ("dim=N axes=cx,cx", "axis 'cx' is named twice"),
        ("dim=N axes=cx mesh=gpus", "there is no mesh @gpus; the module has mesh"),
    ],
)
def test_rejects(options: str, message: str):
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(PROGRAM), f"decompose,distribute{{{options}}}")


def test_rejects_the_graph_level():
    with pytest.raises(PassFailedException, match="run decompose first"):
        run_passes(parse_module(PROGRAM), "distribute{dim=N axes=cx}")


def test_rejects_an_annotation_that_is_no_sharding():
    module = run_passes(parse_module(PROGRAM), "decompose,distribute{dim=N axes=cx}")
    text = str(module).replace('{N = ["cx"]}', '"N"')
    with pytest.raises(PassFailedException, match="expected a sharding"):
        run_passes(parse_module(text), "distribute{dim=M axes=cy}")
