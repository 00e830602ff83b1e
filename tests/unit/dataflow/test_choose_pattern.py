"""The choice of pattern and communication tiles: the cheapest of what applies."""

from collections.abc import Hashable, Mapping

import pytest
from covering import EVERY_CASE, one_of, some
from gpu_ranks import SHARED_TEXTS, TEXTS, on_ranks, sharded
from rank_plans import gathered, hardware_pass, program_cost, program_text
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.program import launch_plan_of, machine_for
from comet.cost.gpu.bounds import plan_bound
from comet.cost.gpu.launch_plan import Machine, Plan
from comet.cost.gpu.taxes import Taxes, price_plan
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.dataflow.bsp_to_dataflow import choose_pattern as search
from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import (
    PATTERNS,
    TRIES,
    PatternName,
    PatternOptions,
    choose_pattern,
    with_pattern,
)
from comet.passes.dataflow.bsp_to_dataflow.connect import ConnectPass
from comet.passes.schedule.plan_string import Numbers
from comet.passes.triton.lower_to_triton import LowerToTritonPass
from comet.recent import Recent


def bsp() -> ModuleOp:
    return run_passes(parse_module(program_text("bsp")), hardware_pass())


def test_the_cheapest_of_all_is_chosen():
    module = bsp()
    before = str(module)
    choice = choose_pattern(module)
    assert str(module) == before
    cheapest = min(choice.costs.values(), key=lambda taxes: taxes.total)
    assert choice.costs[choice.best].total == cheapest.total
    assert {candidate.pattern for candidate in choice.costs} >= {"push", "pull", "bsp"}


def test_a_cost_is_that_of_the_program_that_would_be_launched():
    choice = choose_pattern(bsp(), ("pull",))
    for candidate, taxes in choice.costs.items():
        changed = with_pattern(bsp(), candidate)
        (program,) = programs(changed)
        system = attached_system(changed)
        assert taxes.total == pytest.approx(program_cost(program, system).total)


@one_of(3)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("blocks", [(("M", 1),), (("M", 4), ("K", 2)), (("K", 8),)])
def test_no_cut_of_messages_is_below_the_bound(pattern: PatternName, blocks: Numbers):
    whole, cut = (PatternOptions(pattern, blocks=each) for each in ((), blocks))
    (program,) = programs(with_pattern(bsp(), whole))
    system = attached_system(bsp())
    machine = machine_for(program, system)
    least = plan_bound(launch_plan_of(program, system), machine)
    assert 0 < least <= program_cost(program, system).total
    (program,) = programs(with_pattern(bsp(), cut))
    assert least <= program_cost(program, system).total


def programs(module: ModuleOp) -> list[ProgramOp]:
    return [op for op in module.walk() if isinstance(op, ProgramOp)]


def test_what_cannot_be_lowered_is_not_chosen(monkeypatch: pytest.MonkeyPatch):
    """As if Triton had no word for what the cheapest pattern does."""
    first = choose_pattern(bsp()).best
    lower = LowerToTritonPass.apply

    def refuse(self: LowerToTritonPass, ctx: Context, op: ModuleOp) -> None:
        if str(op) == lowered_channels(first):
            raise PassFailedException("lower-to-triton: no")
        lower(self, ctx, op)

    monkeypatch.setattr(LowerToTritonPass, "apply", refuse)
    choice = choose_pattern(bsp())
    assert choice.best != first
    assert first not in choice.costs
    cheapest = min(choice.costs.values(), key=lambda taxes: taxes.total)
    assert choice.costs[choice.best].total == cheapest.total


def lowered_channels(candidate: PatternOptions) -> str:
    """Return the program of a candidate as `lower-to-triton` sees it."""
    return str(run_passes(with_pattern(bsp(), candidate), "lower-channels"))


def test_tiles_of_the_messages_are_part_of_the_space():
    choice = choose_pattern(bsp(), ("push",))
    cuts = {dict(candidate.blocks).get("M") for candidate in choice.costs}
    assert cuts == {None, 1, 4}
    assert {dict(c.blocks).get("K") for c in choice.costs} == cuts


def test_tiles_of_kernels_are_part_of_the_space_if_asked_for():
    fixed = ConnectPass(tiles="auto")
    choice = choose_pattern(bsp(), ("pull",), fixed)
    tiles = [entry for c in choice.costs for entry in c.tiles]
    assert {entry.name for entry in tiles} == {"gemm"}
    assert len({entry.numbers for entry in tiles}) > 2
    kept = choose_pattern(bsp(), ("pull",))
    assert not any(candidate.tiles for candidate in kept.costs)
    best, least = choice.best, choice.costs[choice.best].total
    assert best.tiles
    assert least < min(taxes.total for taxes in kept.costs.values())


def test_what_is_asked_for_is_not_varied():
    fixed = ConnectPass("auto", "M=2", False, "gemm: M=32 N=32 K=32", sources="each")
    choice = choose_pattern(bsp(), fixed=fixed)
    assert len(choice.costs) == len(PATTERNS)
    assert not any(c.tiles or c.blocks or c.persistent for c in choice.costs)
    options = choice.best.options(fixed)
    assert (options.blocks, options.tiles) == (fixed.blocks, fixed.tiles)


UNEVEN = """
!L = tensor<9x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<9x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<3x8xf32, #compound.dims<M, K @REG>>
!W = tensor<3x16xf32, #compound.dims<M, K @REG>>
collective.mesh @h200x8 {rank = 2} at {rank = "HBM"}
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}]
      outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      KERNELS
      dataflow.yield %h : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}
""".replace("KERNELS", gathered(3))
"""A kernel makes tiles of three rows, which no program of a GPU is exactly."""


def test_what_does_not_apply_has_no_price():
    choice = choose_pattern(run_passes(parse_module(UNEVEN), hardware_pass()))
    assert {c.pattern for c in choice.costs} == set(PATTERNS) - {"fused"}


def test_rejects_a_program_that_no_pattern_fits():
    module = run_passes(parse_module(UNEVEN), hardware_pass())
    with pytest.raises(
        PassFailedException, match=r"no pattern applies: bsp-to.*does not apply"
    ):
        choose_pattern(module, ("fused",))


def test_one_kernel_that_sends_and_reads_saves_a_launch():
    choice = choose_pattern(bsp(), ("push", "fused"))
    assert choice.best.pattern == "fused"
    assert choice.costs[choice.best].launch == pytest.approx(6e-6)


AUTO = "bsp-to-dataflow{pattern=auto tiles=auto}"
FIXED = [PatternOptions(pattern) for pattern in PATTERNS] + [
    PatternOptions("fused", True)
]


def outlined(name: str, ranks: int, sizes: Mapping[str, int]) -> ModuleOp:
    """Return a program of kernels, collectives and barriers."""
    passes = sharded(ranks, "N") if name in TEXTS else on_ranks(ranks)
    text = {**TEXTS, **SHARED_TEXTS, **DECODING}[name].format(**sizes)
    return run_passes(parse_module(text), f"{passes},fuse,tile,outline-kernels")


def seconds(module: ModuleOp) -> float:
    (program,) = programs(module)
    return program_cost(program, attached_system(module)).total


DECODING = {
    "flash_decode": """
func.func @f(%q: tensor<1x12x8x128xf16>,
             %k: tensor<1x12x{S}x128xf16> {{collective.shard = {{S = ["rank"]}}}},
             %v: tensor<1x12x{S}x128xf16> {{collective.shard = {{S = ["rank"]}}}},
             %lens: tensor<1xi32>) -> tensor<1x12x8x128xf16> {{
  %o = compound.flash_decode %q, %k, %v, %lens {{collective.shard = {{S = ["rank"]}}}} :
      (tensor<1x12x8x128xf16>, tensor<1x12x{S}x128xf16>, tensor<1x12x{S}x128xf16>,
      tensor<1xi32>) -> tensor<1x12x8x128xf16>
  func.return %o : tensor<1x12x8x128xf16>
}}
"""
}
SMALL = {"M": 64, "N": 96, "K": 128, "S": 4096}


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        (name, ranks)
        for name in (*TEXTS, *SHARED_TEXTS, *DECODING)
        for ranks in (3, 8)
        if EVERY_CASE or (name in DECODING and ranks == 8)
    ],
)
def test_auto_is_never_costlier_than_a_pattern(
    name: str, ranks: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search, "TRIES", 2)
    before = outlined(name, ranks, SMALL)
    cost = seconds(run_passes(before, AUTO))
    for candidate in FIXED:
        assert cost <= seconds(with_pattern(before, candidate)) + 1e-9


PAPER = [
    ("ag_gemm", {"M": 1, "N": 3584, "K": 8192}),
    ("ag_gemm", {"M": 4096, "N": 3584, "K": 8192}),
    ("flash_decode", {"S": 8 * 524288}),
]


@one_of(3)
@pytest.mark.parametrize(("name", "sizes"), PAPER)
def test_the_sizes_of_the_papers(
    name: str, sizes: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
):
    tries = TRIES if EVERY_CASE else TRIES // 4
    monkeypatch.setattr(search, "TRIES", tries)
    before = outlined(name, 8, sizes)
    choice = choose_pattern(before, fixed=ConnectPass(tiles="auto"))
    assert len(choice.costs) <= tries + len(FIXED)
    least = choice.costs[choice.best].total
    assert all(least <= taxes.total + 1e-9 for taxes in choice.costs.values())
    assert choice.best.pattern == "fused"


@one_of(3)
@pytest.mark.parametrize("name", some([*TEXTS, *SHARED_TEXTS], 4))
def test_what_is_chosen_is_cheapest_means_the_same_and_can_be_fed_back(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search, "TRIES", 2)
    before = outlined(name, 3, {"M": 13, "N": 21, "K": 10})
    after = run_passes(before, AUTO)
    for candidate in FIXED:
        assert seconds(after) <= seconds(with_pattern(before, candidate)) + 1e-9
    assert_same_meaning(before, after, "f")
    (chosen,) = (f.attributes.pop("comet.pattern") for f in compute_functions(after))
    assert isinstance(chosen, StringAttr)
    again = run_passes(before, chosen.data)
    assert str(again) == str(after)


def forget_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the prices of earlier searches."""
    empty = Recent[Hashable, search.Priced](search.MOST_PRICED)
    monkeypatch.setattr(search, "_PRICED", empty)


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The launch plans that are priced."""
    forget_prices(monkeypatch)
    found = list[Plan]()

    def noting(plan: Plan, machine: Machine) -> Taxes:
        found.append(plan)
        return price_plan(plan, machine)

    monkeypatch.setattr(search, "price_plan", noting)
    return found


def test_a_search_takes_prices_of_an_earlier_one(priced: list[Plan]) -> None:
    """One that varies tiles, too, has all that one with present tiles has priced."""
    first = choose_pattern(bsp())
    count = len(priced)
    assert count > 1
    again = choose_pattern(bsp(), fixed=ConnectPass("auto", tiles="auto"))
    assert len(priced) - count == len(again.costs.keys() - first.costs.keys()) > 0
    for candidate in again.costs.keys() & first.costs.keys():
        assert again.costs[candidate] == first.costs[candidate]


@pytest.mark.parametrize(
    ("hardware", "fixed"),
    [
        (hardware_pass("h200x8"), ConnectPass("auto")),
        (hardware_pass(), ConnectPass("auto", sources="all")),
        (hardware_pass(), ConnectPass("auto", blocks="M=2")),
    ],
    ids=["hardware", "sources", "blocks"],
)
def test_other_plans_are_priced_anew(
    hardware: str,
    fixed: ConnectPass,
    priced: list[Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose_pattern(bsp())
    other = run_passes(parse_module(program_text("bsp")), hardware)
    after_another = choose_pattern(other, fixed=fixed).costs
    forget_prices(monkeypatch)
    assert after_another == choose_pattern(other, fixed=fixed).costs
