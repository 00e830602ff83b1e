"""`pad`: the same meaning for any extents, down to tile trees; the numbers it needs."""

import random
from math import isnan

import numpy as np
import pytest
from accelerators import attached
from comet_rules import check
from covering import EVERY_CASE, one_of
from hypothesis import given, settings
from hypothesis import strategies as st
from named_ops import NAMED_OPS, NamedOp
from paths import HARDWARE
from programs import graph_text
from semantics import (
    assert_same_meaning,
    parse_module,
    random_inputs,
    run_passes,
)
from xdsl.dialects.builtin import ModuleOp, f64, i1
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import (
    InterpretationError,
    PassFailedException,
    VerifyException,
)
from xdsl.utils.test_value import create_ssa_value

from comet.codegen.comet import write_files
from comet.dialects.arch import attached_system
from comet.dialects.compound import MAP_ARITY, FillOp, MapKind, MapOp, PadOp
from comet.dialects.compound.dims import tensor, with_element_type
from comet.interpreter import run
from comet.interpreter.compound import MAP
from comet.passes.graph.pad.extents import suitable_extents
from comet.passes.graph.pad.padding_value import PaddingValue, padding_of_result

EDGE = f'attach-hardware{{path="{HARDWARE / "edge.yaml"}"}}'
CLOUD = f'attach-hardware{{path="{HARDWARE / "cloud.yaml"}"}}'
ELEMENTARY = "decompose{accumulator=input}"
TILED = [op for op in NAMED_OPS if not op.positions]
each_op = pytest.mark.parametrize(
    "op", [op for op in NAMED_OPS if not op.viewed], ids=lambda op: op.title
)


def padded(before: ModuleOp, extents: dict[str, int]) -> ModuleOp:
    """Return an elementary module with larger extents."""
    to = ",".join(f"{dim}={extent}" for dim, extent in extents.items())
    return run_passes(before, f'pad{{to="{to}"}}')


def masks_of(module: ModuleOp) -> list[PadOp]:
    """Return the pads that replace what padding holds."""
    return [op for op in module.walk() if isinstance(op, PadOp) and op.is_mask]


@one_of(2)
@pytest.mark.parametrize("seed", range(3 if EVERY_CASE else 1))
@each_op
def test_named_ops(op: NamedOp, seed: int):
    generator = random.Random(seed)
    before = run_passes(parse_module(op.text(op.odd)), ELEMENTARY)
    known = [dim for dim in op.odd if op.name != "ssm_scan" or dim != "T"]
    larger = {dim: op.odd[dim] + generator.choice((0, 1, 2, 5)) for dim in known}
    assert_same_meaning(before, padded(before, larger), "main", seed=seed)


@pytest.mark.parametrize("op", TILED, ids=lambda op: op.title)
def test_every_mask_is_needed(op: NamedOp):
    """Without one of the masks the result is another one."""
    before = run_passes(parse_module(op.text(op.odd)), ELEMENTARY)
    after = padded(before, {dim: extent + 3 for dim, extent in op.odd.items()})
    inputs = random_inputs(before, "main")
    for index, mask in enumerate(masks_of(after)):
        without = after.clone()
        kept = masks_of(without)[index]
        kept.result.replace_all_uses_with(kept.input)
        (expected,), (found,) = (
            run(module, "main", inputs) for module in (before, without)
        )
        assert not np.allclose(expected, found), mask


TREES = [("none", ""), ("full", "stream,")]
FEW = {"gemm_softmax": "none", "attention": "full"}


@pytest.mark.parametrize(
    ("op", "strategy", "stream"),
    [
        (op, *tree)
        for op in TILED
        for tree in TREES
        if EVERY_CASE or FEW.get(op.title) == tree[0]
    ],
    ids=lambda part: part.title if isinstance(part, NamedOp) else part,
)
def test_tile_trees_and_files(op: NamedOp, strategy: str, stream: str):
    """Masks stay what they are on instances and in loops; the files divide evenly."""
    before = parse_module(op.text(op.odd))
    to = ",".join(f"{dim}={-(-n // 16) * 16}" for dim, n in op.odd.items())
    pipeline = (
        f'{attached(16)},{ELEMENTARY},pad{{to="{to}"}},{stream}'
        f"distribute{{dim={op.result[-2]} axes=cx,cy,kx,ky}},insert-collectives,"
        f"place-collectives{{at=GB}},fuse{{strategy={strategy}}},tile,bind"
    )
    tiled = run_passes(before, pipeline)
    assert_same_meaning(before, tiled, "main")
    files = write_files(run_passes(tiled, "lower-to-comet"))
    assert not check(files)
    assert "# padded from" in files["problem.yaml"]


def test_masks_on_instances():
    """Of a dimension that instances share, each masks its own shard."""
    before = parse_module(graph_text("gemm_softmax", (5, 6, 18)))
    to_nests = (
        f'{EDGE},{ELEMENTARY},pad{{to="N=32"}},distribute{{dim=N axes=cx,cy,kx,ky}},'
        "insert-collectives,place-collectives{at=GB}"
    )
    for rest in ("", ",fuse{strategy=full}", ",fuse{strategy=full},tile"):
        after = run_passes(before, to_nests + rest)
        assert masks_of(after)
        assert_same_meaning(before, after, "main")


def test_gathered_columns_get_another_name():
    before = parse_module(graph_text("gemm_softmax", (17, 16, 18)))
    after = run_passes(
        before,
        f'{EDGE},{ELEMENTARY},pad{{to="M=32,N=32"}},'
        "distribute{dim=N axes=cx,cy,kx,ky op=contract},"
        "distribute{dim=N axes=kx,ky skip=contract},insert-collectives,"
        "place-collectives{at=GB kind=gather},fuse{strategy=full},tile,bind",
    )
    assert {*masks_of(after)[0].extents} == {"N1"}
    assert_same_meaning(before, after, "main")
    assert not check(write_files(run_passes(after, "lower-to-comet")))


OF_FLOATS = [each for each in MapKind if each not in (MapKind.SELECT, MapKind.RANDOM)]
NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 1e-8, 70000.0, -np.inf, np.inf])


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    kind=st.sampled_from(OF_FLOATS),
    padding=NUMBERS,
    element=st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-6),
    other=st.sampled_from(["padding", "element", "constant"]),
    first=st.booleans(),
)
def test_known_numbers_are_those_that_maps_compute(
    kind: MapKind, padding: float, element: float, other: str, first: bool
):
    """What the analysis says holds for any elements along other dimensions."""
    row = create_ssa_value(tensor({"M": 2, "N": 3}, f64))
    column = create_ssa_value(tensor({"M": 2}, f64))
    constant = FillOp(0.5, tensor({}, f64)).result
    others = {"padding": (row, padding), "element": (column, element)}
    pair = [(row, padding), others.get(other, (constant, 0.5))]
    chosen = (pair if first else pair[::-1])[: MAP_ARITY[kind]]
    values, numbers = [value for value, _ in chosen], [number for _, number in chosen]
    if row not in values:
        return
    op = MapOp(kind, values, row.type)
    paddings: dict[SSAValue, PaddingValue] = {
        row: {"N": padding},
        column: {},
        constant: {},
    }
    known = padding_of_result(op, ["N"], paddings)["N"]
    with np.errstate(all="ignore"):
        computed = float(MAP[kind](*map(np.asarray, numbers)))
    assert known is None or known == pytest.approx(computed)
    assert known is None or not isnan(computed)


@pytest.mark.parametrize(
    ("condition", "then", "otherwise", "known"),
    [
        (1.0, 2.0, None, 2.0),
        (0.0, None, 3.0, 3.0),
        (None, 2.0, 2.0, 2.0),
        (None, 2.0, 3.0, None),
        (1.0, None, 3.0, None),
    ],
)
def test_selections_have_the_number_that_they_take(
    condition: float | None,
    then: float | None,
    otherwise: float | None,
    known: float | None,
):
    row = tensor({"M": 2, "N": 3}, f64)
    types = with_element_type(row, i1), row, row
    values = [create_ssa_value(type_) for type_ in types]
    op = MapOp(MapKind.SELECT, values, row)
    op.verify()
    numbers = condition, then, otherwise
    paddings: dict[SSAValue, PaddingValue] = {}
    paddings.update((v, {"N": n}) for v, n in zip(values, numbers, strict=True))
    assert padding_of_result(op, ["N"], paddings) == {"N": known}


@pytest.mark.parametrize(
    ("machine", "sizes", "first"),
    [
        (EDGE, (257, 128, 257), {"M": 272, "N": 272}),
        (EDGE, (251, 96, 1009), {"M": 256, "N": 1024}),
        (CLOUD, (512, 128, 7919), {"N": 7936}),
        (CLOUD, (257, 128, 256), {"M": 320}),
        (EDGE, (256, 131, 256), {"K": 144}),
        (EDGE, (3, 16, 16), {}),
        (EDGE, (128, 100, 256), {}),
        (CLOUD, (512, 128, 1024), {}),
    ],
)
def test_suitable_extents(
    machine: str, sizes: tuple[int, int, int], first: dict[str, int]
):
    """Those that the instances divide; nothing is tried if the extent suits."""
    text = graph_text("gemm_softmax", sizes)
    module = run_passes(parse_module(text), f"{machine},{ELEMENTARY}")
    found = suitable_extents(module, attached_system(module))
    assert (found[0] if found else {}) == first


def test_auto_takes_the_least_padding():
    text = graph_text("gemm_softmax", (257, 8, 257))
    before = run_passes(parse_module(text), f"{EDGE},{ELEMENTARY}")
    after = run_passes(before, "pad")
    assert "tensor<272x272xf16" in str(after)
    assert_same_meaning(before, after, "main")


def test_hardware_of_a_gpu():
    path = HARDWARE / "h200x1.yaml"
    module = parse_module(graph_text("gemm_softmax", (5, 6, 7)))
    with pytest.raises(PassFailedException, match="pad: hardware @h200x1 is a GPU"):
        run_passes(
            module, f'attach-hardware{{path="{path}"}},decompose,pad{{to="N=8"}}'
        )


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("N", "'N' is not of the form DIM=EXTENT"),
        ("N=8,N=9", "N has two extents"),
        ("N=0", "'N=0' is not of the form"),
    ],
)
def test_options(to: str, reason: str):
    with pytest.raises(PassFailedException, match=reason):
        run_passes(parse_module("builtin.module {}"), f'pad{{to="{to}"}}')


def test_shards_are_not_resized():
    text = """
      collective.mesh @m {x = 2}
      func.func @main(%x: tensor<6xf32, #compound.dims<N>>)
          -> tensor<6xf32, #compound.dims<N>> {
        %r = collective.spmd on @m ins(%x : tensor<6xf32, #compound.dims<N>>)
            sharded [{N = ["x"]}] outs(tensor<6xf32, #compound.dims<N>>)
            sharded [{N = ["x"]}] {
        ^bb0(%l: tensor<3xf32, #compound.dims<N>>):
          %s = compound.slice %l : tensor<3xf32, #compound.dims<N>>
            -> tensor<2xf32, #compound.dims<N>>
          %p = compound.pad %s <0.0 from N = 2> : tensor<2xf32, #compound.dims<N>>
            -> tensor<3xf32, #compound.dims<N>>
          collective.yield %p : tensor<3xf32, #compound.dims<N>>
        }
        func.return %r : tensor<6xf32, #compound.dims<N>>
      }"""
    with pytest.raises(
        VerifyException, match="resizes N, which is split over axis 'x'"
    ):
        parse_module(text)
    with pytest.raises(InterpretationError, match="of which an instance has only a sh"):
        run(parse_module(text, verify=False), "main", [np.zeros(6)])
