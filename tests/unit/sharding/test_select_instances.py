"""A part of a mesh: what is left out, what programs mean on it, and what they cost."""

import pytest
from accelerators import edge_like
from covering import one_of
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from comet.codegen.comet.arch import left_out
from comet.codegen.comet.tool_rules import check_tool
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import LEFT_OUT, attached_system

SOFTMAX = graph_text("gemm_softmax", (6, 4, 16))


def attached(clusters: tuple[int, int], cores: tuple[int, int] = (1, 1)) -> str:
    return f'attach-hardware{{path="{edge_like(clusters, cores)}"}}'


def test_instances_of_all_levels_that_span_the_axes_are_left_out():
    """IB and WB lie in the cores, so they have the axes of OB."""
    module = run_passes(
        parse_module(SOFTMAX),
        f'{attached((3, 5), (4, 4))},select-instances{{axes="cy=4,kx=3"}}',
    )
    system = attached_system(module)
    assert system.axes == {"cx": 3, "cy": 4, "kx": 3, "ky": 4}
    assert {lv.level_name: lv.mesh_shape for lv in system.levels} == {
        "DRAM": (1, 1),
        "GB": (3, 4),
        **dict.fromkeys(("IB", "WB", "OB"), (3, 4)),
    }
    assert left_out(system) == (
        "12 of the 15 instances of GB are used; 12 of the 16 instances of IB, WB, OB "
        "are used",
    )


def test_one_instance_is_used():
    module = run_passes(
        parse_module(SOFTMAX),
        f'{attached((3, 5))},select-instances{{axes="cx=1,cy=1"}}',
    )
    said = left_out(attached_system(module))
    assert said == ("1 of the 15 instances of GB is used",)


@one_of(2)
@pytest.mark.parametrize(
    ("parts", "left", "distribute"),
    [
        ("cx=2,cy=4", (2, 4), "distribute{dim=N axes=cx,cy}"),
        ("cx=2", (2, 5), "distribute{dim=M axes=cx}"),
        ("cy=4", (3, 4), "distribute{dim=M axes=cx},distribute{dim=N axes=cy}"),
    ],
)
def test_a_part_of_a_mesh_is_as_a_machine_of_these_instances(
    parts: str, left: tuple[int, int], distribute: str
):
    mapped = (
        f"{distribute},insert-collectives,place-collectives{{at=GB}},"
        "fuse{strategy=full},tile"
    )
    program = parse_module(SOFTMAX)
    before = f"{attached((3, 5))},decompose,select-instances"
    module = run_passes(program, f'{before}{{axes="{parts}"}},{mapped}')
    assert_same_meaning(program, module, "main")
    small = run_passes(program, f"{attached(left)},decompose,{mapped}")
    figures = [
        estimate_module(run_passes(tree, "lower-to-comet{model=paper}"), "paper")
        for tree in (module, small)
    ]
    assert figures[0] == figures[1]


def test_the_comet_tool_knows_no_part_of_a_mesh():
    options = 'dim="N:cx=2,cy" strategy=full stream=false'
    pipeline = f"{attached((4, 4))},comet-accelerator{{{options}}}"
    module = run_passes(parse_module(SOFTMAX), pipeline)
    with pytest.raises(DiagnosticException, match="let no dimension use a part of an"):
        check_tool(module)


def test_all_instances_are_no_part():
    program = parse_module(SOFTMAX)
    module = run_passes(program, f'{attached((3, 5))},select-instances{{axes="cx=3"}}')
    assert LEFT_OUT not in attached_system(module).attributes


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("cz=2", "select-instances: mesh @edge has no axis 'cz'"),
        ("cy=6", "select-instances: the axis cy has 5 instances and not 6; use fewer"),
        ("cx", "'axes' says how many instances of each mesh axis are used, as in"),
        ("cx=1,cx=2", "'axes' says how many instances of each mesh axis are used"),
        ("cx=0", "'axes' says how many instances of each mesh axis are used"),
    ],
)
def test_what_a_mesh_lacks_is_rejected(axes: str, message: str):
    pipeline = f'{attached((3, 5))},select-instances{{axes="{axes}"}}'
    with pytest.raises(PassFailedException, match=message):
        run_passes(parse_module(SOFTMAX), pipeline)
