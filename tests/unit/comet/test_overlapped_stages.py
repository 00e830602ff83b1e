"""Siblings that overlap: the COMET tool crashes on some, and these are rejected."""

import re
from dataclasses import dataclass
from functools import cache

import pytest
from accelerators import attached
from comet_rules import check
from covering import one_of
from semantics import parse_module, run_passes
from tool_run import comet_cost, comet_opt
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.comet import write_files
from comet.cost.accelerator.bindings import stalls_read
from comet.passes.comet.lower_to_comet import lower_module

Q, K, V, R = (f"tensor<1x4x{shape}xf16>" for shape in ("1x16", "8x16", "8x8", "1x8"))
ATTENTION = f"""
func.func @main(%q: {Q}, %k: {K}, %v: {V}) -> {R} {{
  %o = compound.attention %q, %k, %v : ({Q}, {K}, {V}) -> {R}
  func.return %o : {R}
}}
"""


A, B, C = (f"tensor<{shape}xf16>" for shape in ("256x48", "48x64", "256x64"))
BIAS = f"""
func.func @main(%a: {A}, %b: {B}, %bias: tensor<64xf16>) -> {C} {{
  %c = compound.gemm_bias_relu %a, %b, %bias : ({A}, {B}, tensor<64xf16>) -> {C}
  func.return %c : {C}
}}
"""


@dataclass(frozen=True)
class Crash:
    """A program whose pipelined tree crashes the COMET tool."""

    text: str
    passes: str
    """Those from `decompose` on."""
    strategy: str
    reason: str

    @cache
    def tiled(self) -> ModuleOp:
        """The tree with factors."""
        pipeline = (
            f"{attached(16)},decompose{{accumulator=input}},{self.passes},"
            "insert-collectives,place-collectives,"
            f"fuse{{strategy={self.strategy}}},tile"
        )
        return run_passes(parse_module(self.text), pipeline)

    def tree(self, bind: str) -> ModuleOp:
        """The tree with factors and bindings."""
        return run_passes(self.tiled(), f"bind{{kind={bind}}}")

    def files(self) -> dict[str, str]:
        """The files of the pipelined tree, which no pass would write."""
        module = self.tree("pipeline")
        lower_module(module)
        return write_files(module)


CRASHES = (
    Crash(
        BIAS,
        "distribute{dim=N axes=cx,cy,kx,ky}",
        "none",
        r"makes \d of the \d iterations of .* reads past the end of its stalls; bind",
    ),
    Crash(
        ATTENTION,
        "stream,distribute{dim=H axes=cx,cy}",
        "full",
        "moves no tensor of .*, nor any to a level that this reads from .*; bind",
    ),
)
each_crash = pytest.mark.parametrize("crash", CRASHES, ids=("uneven", "unfed"))


@one_of(2)
@each_crash
def test_lowering_rejects_what_crashes(crash: Crash) -> None:
    with pytest.raises(PassFailedException, match=rf"lower-to-comet: .*{crash.reason}"):
        run_passes(crash.tree("pipeline"), "lower-to-comet")


@each_crash
def test_the_tool_model_rejects_what_crashes(crash: Crash) -> None:
    texts = {name.removesuffix(".yaml"): text for name, text in crash.files().items()}
    assert re.search(crash.reason, comet_cost(texts).sentence)
    assert comet_cost(texts, "--model", "paper").code == 0


@one_of(2)
@each_crash
def test_the_rules_of_the_format_name_it(crash: Crash) -> None:
    assert {violation.rule for violation in check(crash.files())} == {"stages"}


@one_of(2)
@each_crash
@pytest.mark.parametrize("bind", ["auto", "sequential"])
def test_other_bindings_can_be_written(crash: Crash, bind: str) -> None:
    assert check(write_files(run_passes(crash.tree(bind), "lower-to-comet"))) == []


def test_the_stalls_that_are_read() -> None:
    """Play the start and the end of a pipeline with each stage as the longest."""
    for stages in range(1, 6):
        for iterations in range(1, 7):
            read = [0] * stages
            for longest in range(stages):
                filling = range(longest)
                draining = range(longest + iterations, iterations + stages - 1)
                for slot in (*filling, *draining):
                    for place in set(range(stages)) - {longest}:
                        if 0 <= slot - place < iterations:
                            read[place] = max(read[place], slot - place + 1)
            rule = [stalls_read(place, stages, iterations) for place in range(stages)]
            assert rule == read


def test_the_place_is_that_of_the_node() -> None:
    pipeline = f"{attached(16)},comet-accelerator{{strategy=none bind=pipeline}}"
    assert "'comet.tile' op" in comet_opt(BIAS, pipeline, "comet").sentence
