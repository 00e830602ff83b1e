"""A pipeline is the list of passes that `comet-opt --expand` prints."""

import re
from dataclasses import dataclass

import pytest
from choice_notes import without_notes
from covering import exhaustive, one_of
from gpu_ranks import H200X8, SHARED_TEXTS
from named_ops import NAMED_OPS
from paths import ROOT
from semantics import comet_context, parse_module, run_passes
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.arg_spec import parse_pipeline

from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipeline import run_settled, spelled
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.distribute import DistributePass
from comet.universe import installed

EDGE = f'attach-hardware{{path="{ROOT / "samples/hardware/edge.yaml"}"}}'
TEXTS = {op.title: op.text(op.even) for op in NAMED_OPS}
GATHERED = SHARED_TEXTS["ag_gemm"].format(M=64, N=96, K=256)


@dataclass(frozen=True)
class Case:
    """A pipeline, and what has to be found in the list of its passes."""

    text: str
    passes: str
    found: tuple[str, ...]


CASES = {
    "accelerator": Case(
        TEXTS["gemm_softmax"],
        f"{EDGE},comet-accelerator{{stream=false pad=none}}",
        ("distribute{dim=", "kind=", "fuse{strategy=", "tile{factors="),
    ),
    "streamed or not": Case(
        TEXTS["attention"],
        f"{EDGE},comet-accelerator{{strategy=full chunks=shared}}",
        ("stream{counts=true},distribute{dim=H axes=", "chunks=shared"),
    ),
    "one GPU": Case(
        TEXTS["gemm_layernorm"],
        f"{H200X8},triton-distributed{{split=none}}",
        ("fuse{strategy=", "between=recompute"),
    ),
    "split": Case(
        TEXTS["flash_decode"],
        f'{H200X8},triton-distributed{{split="S=1"}}',
        ("split{dim=S parts=1}",),
    ),
    "push": Case(
        GATHERED,
        f"{H200X8},triton-distributed{{ranks=4 pattern=push}}",
        ("select-ranks{ranks=4}", "bsp-to-dataflow{pattern=push"),
    ),
    "any pattern": Case(
        GATHERED,
        f"{H200X8},triton-distributed{{ranks=4 pattern=auto}}",
        ("bsp-to-dataflow{pattern=fused",),
    ),
}


def expanded(text: str, passes: str) -> tuple[str, ModuleOp]:
    """Return the list of passes, and what they have made."""
    module, context = parse_module(text), comet_context().clone()
    pipeline = PassPipeline.parse_spec(installed().all_passes, passes)
    return spelled(run_settled(pipeline.passes, context, module)), module


@one_of(4)
@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=exhaustive if name == "push" else ()) for name in CASES],
)
def test_the_list_of_passes_gives_what_the_pipeline_gives(case: str) -> None:
    text, passes, found = CASES[case].text, CASES[case].passes, CASES[case].found
    line, one = expanded(text, passes)
    for part in (*found, "annotate-cost{model=paper}"):
        assert part in line
    assert "factors=auto" not in line
    assert "strategy=auto" not in line
    assert "pattern=auto" not in line
    other = run_passes(parse_module(text), line)
    assert without_notes(one) == without_notes(other)


def test_a_pass_that_chooses_is_spelled_with_its_choice() -> None:
    passes = f"{EDGE},decompose{{accumulator=input}},fuse{{strategy=full}},tile"
    line, _ = expanded(TEXTS["gemm_silu"], passes)
    assert re.search(r',tile\{factors="[^"]+" ', line)


def test_options_are_spelled_so_that_they_can_be_read() -> None:
    first, second = DistributePass("N", ("cx", "cy")), AttachHardwarePass('a "b"; \\')
    line = spelled((first, second))
    assert line == r'distribute{dim=N axes=cx,cy},attach-hardware{path="a \"b\"; \\"}'
    one, other = parse_pipeline(line)
    assert DistributePass.from_spec(one) == first
    assert AttachHardwarePass.from_spec(other) == second


def test_two_functions_with_different_plans_are_left_to_the_search() -> None:
    softmax = TEXTS["gemm_softmax"].replace("@main", "@other")
    module = parse_module(TEXTS["gemm_silu"] + softmax)
    tile = TilePass()
    before = f"{EDGE},decompose{{accumulator=input}},fuse{{strategy=full}}"
    ready = run_passes(module, before)
    assert run_settled([tile], Context(), ready) == (tile,)
