"""Several GPUs: kernels and collectives mean what the function did, on any ranks."""

from collections.abc import Iterator
from itertools import product

import pytest
from covering import covering, one_of
from gpu_ranks import SHARED_TEXTS, TEXTS, on_ranks, sharded
from semantics import (
    assert_same_meaning,
    comet_context,
    parse_module,
    run_passes,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import ContractOp
from comet.dialects.dataflow import BarrierOp, KernelOp, ProgramOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel, level_of_function
from comet.passes.dataflow.outline_kernels import OutlineKernelsPass

SIZES = {"small": {"M": 5, "N": 13, "K": 3}, "even": {"M": 16, "N": 32, "K": 8}}
LOWER = "fuse{strategy=auto},tile,outline-kernels"


@one_of(2)
@pytest.mark.parametrize(
    ("name", "dim", "ranks", "size"),
    covering(product(TEXTS, ("M", "N"), (1, 3, 8), SIZES), 1),
)
def test_programs_of_several_ranks(name: str, dim: str, ranks: int, size: str) -> None:
    before = parse_module(TEXTS[name].format(**SIZES[size]))
    after = run_passes(before, f"{sharded(ranks, dim)},{LOWER}")
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize(
    ("name", "ranks", "size"), covering(product(SHARED_TEXTS, (2, 3, 4, 8), SIZES), 1)
)
def test_programs_that_say_their_shards(name: str, ranks: int, size: str) -> None:
    before = parse_module(SHARED_TEXTS[name].format(**SIZES[size]))
    after = run_passes(before, f"{on_ranks(ranks)},{LOWER}")
    assert any(isinstance(op, CollectiveOp) for op in after.walk())
    assert_same_meaning(before, after, "f")


def lowered(name: str, ranks: int, passes: str = LOWER) -> ModuleOp:
    text = TEXTS[name].format(**SIZES["small"])
    return run_passes(parse_module(text), f"{sharded(ranks, 'N')},{passes}")


def steps(module: ModuleOp) -> Iterator[str]:
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    for op in program.body.block.ops:
        if isinstance(op, KernelOp):
            yield op.sym_name.data.removeprefix("f_").removesuffix("_kernel")
        elif isinstance(op, BarrierOp):
            yield "barrier" if op.local is None else "local barrier"


def test_collectives_stand_between_barriers_of_all_ranks() -> None:
    assert list(steps(lowered("softmax", 4))) == [
        "c",
        "barrier",
        "gather_m",
        "gather_l",
        "barrier",
        "p",
    ]


def test_kernels_of_one_rank_wait_for_that_rank_only() -> None:
    passes = "fuse{strategy=none},tile,outline-kernels"
    assert list(steps(lowered("softmax", 4, passes)))[:3] == ["c", "local barrier", "m"]


def test_kernels_say_what_ranks_share_unevenly() -> None:
    shares = [
        str(op.shards)
        for op in lowered("softmax", 4).walk()
        if isinstance(op, KernelOp)
    ]
    assert shares == ["{N = 13 : i64}", "None", "None", "{N = 13 : i64}"]


@one_of(2)
@pytest.mark.parametrize(("between", "products"), [("recompute", 2), ("spill", 1)])
def test_products_on_both_sides_of_a_collective(between: str, products: int) -> None:
    before = parse_module(TEXTS["softmax"].format(**SIZES["small"]))
    fuse = f"fuse{{strategy=partial between={between}}},tile,outline-kernels"
    after = run_passes(before, f"{sharded(3, 'N')},{fuse}")
    kernels = [op for op in after.walk() if isinstance(op, KernelOp)]
    made = [
        any(isinstance(op, ContractOp) for op in kernel.walk()) for kernel in kernels
    ]
    assert made == [True, False, False, products == 2]
    assert len(kernels[0].outs) == (2 if products == 2 else 3)
    assert_same_meaning(before, after, "f")


@one_of(2)
@pytest.mark.parametrize(
    ("passes", "level"),
    [
        ("canonicalize", IRLevel.SPMD),
        ("fuse", IRLevel.SCHEDULE),
        (LOWER, IRLevel.DATAFLOW),
    ],
)
def test_levels_are_seen_inside_the_region(passes: str, level: IRLevel) -> None:
    function = next(iter(compute_functions(lowered("softmax", 2, passes))))
    assert level_of_function(function) is level


TERMS = """
!a = tensor<4x{K}xf16, #compound.dims<M, K @HBM>>
!b = tensor<{K}x5xf16, #compound.dims<K, N @HBM>>
!c = tensor<4x5xf32, #compound.dims<M, N @HBM>>
!a0 = tensor<4x{K}xf16, #compound.dims<M, K @SMEM>>
!b0 = tensor<{K}x5xf16, #compound.dims<K, N @SMEM>>
!c0 = tensor<4x5xf32, #compound.dims<M, N @REG>>
collective.mesh @m {{rank = 2}}
func.func @f(%a: tensor<4x6xf16, #compound.dims<M, K @HBM>>,
             %b: tensor<6x5xf16, #compound.dims<K, N @HBM>>) -> !c {{
  %c = collective.spmd on @m ins(%a, %b : tensor<4x6xf16, #compound.dims<M, K @HBM>>,
      tensor<6x5xf16, #compound.dims<K, N @HBM>>)
      sharded [{{K = ["rank"]}}, {{K = ["rank"]}}] outs(!c) sharded [{{}}] {{
  ^bb0(%a1: !a, %b1: !b):
    %c1 = schedule.spatial on grid [g0: M = 1] ins(%a1, %b1 : !a, !b) outs(!c) {{
    ^bb1(%a2: !a0, %b2: !b0):
      %c2 = compound.contract %a2, %b2 : !a0, !b0 -> !c0
      schedule.yield %c2 : !c0
    }}
    collective.yield %c1 : !c
  }}
  func.return %c : !c
}}
"""
"""Every rank makes terms of a product, and nobody adds them up."""


def test_a_forgotten_reduction_is_found_in_tile_trees_and_programs() -> None:
    module = parse_module(TERMS.format(K=3), verify=False)
    with pytest.raises(VerifyException, match="all_reduce add is missing"):
        module.verify()
    OutlineKernelsPass().apply(comet_context(), module)
    assert any(isinstance(op, KernelOp) for op in module.walk())
    with pytest.raises(VerifyException, match="all_reduce add is missing"):
        module.verify()


def test_reductions_are_exchanged_before() -> None:
    passes = f"{sharded(2, 'N').replace(',lower-reductions', '')},fuse"
    with pytest.raises(PassFailedException, match="run lower-reductions before fuse"):
        run_passes(parse_module(TEXTS["rmsnorm"].format(**SIZES["small"])), passes)


FOLD = """
  %{name} = compound.fold over "{dim}" ins({of} : !{of_type}) init(%{start} : !{type})
  step {{
  ^bb0(%chunk: !{of_type}, %old: !{type}):
    %now = compound.reduce max %chunk : !{of_type} -> !{type}
    %new = compound.map max %old, %now : !{type}, !{type} -> !{type}
    compound.yield %new : !{type}
  }} merge {{
  ^bb1(%x1: !{type}, %y1: !{type}):
    %new1 = compound.map max %x1, %y1 : !{type}, !{type} -> !{type}
    compound.yield %new1 : !{type}
  }} -> !{type}
"""
FOLDED_TYPES = """
!x = tensor<4x32xf32, #compound.dims<N, K>>
!n = tensor<4xf32, #compound.dims<N>>
!k = tensor<32xf32, #compound.dims<K>>
!s = tensor<f32, #compound.dims<>>
"""
AFTER_A_SWEEP = f"""{FOLDED_TYPES}
func.func @main(%x: !x) -> (!s, !k) {{
  %l = compound.reduce add %x : !x -> !k
  %low = compound.fill -3.0e+38 : !s
  {FOLD.format(name="m", dim="K", of="%l", of_type="k", start="low", type="s")}
  %n = compound.extent "N" of %x : !x -> !s
  %mean = compound.map div %l, %n : !k, !s -> !k
  func.return %m, %mean : !s, !k
}}
"""
"""
The extent is known after a reduction loop over K, in which the fold could be done
whole.
"""
BESIDE_ANOTHER = f"""{FOLDED_TYPES}
func.func @main(%x: !x, %i: !n, %j: !k) -> (!n, !k) {{
  {FOLD.format(name="m", dim="K", of="%x", of_type="x", start="i", type="n")}
  {FOLD.format(name="l", dim="N", of="%x", of_type="x", start="j", type="k")}
  func.return %m, %l : !n, !k
}}
"""
"""A loop over either dimension would are inside that over the other."""


@one_of(2)
@pytest.mark.parametrize("dim", ["K", "N"])
@pytest.mark.parametrize("text", [AFTER_A_SWEEP, BESIDE_ANOTHER])
def test_a_fold_that_ranks_do_in_parts_is_a_loop(text: str, dim: str) -> None:
    module = parse_module(text)
    after = run_passes(module, f"{sharded(2, dim)},fuse{{strategy=none}}")
    assert_same_meaning(module, after, "main")
