"""The pipeline of one GPU: what it emits computes what was written, at any size."""

from pathlib import Path

import pytest
from gpu_graphs import GRAPHS, H200, LAYERNORM, SOFTMAX
from semantics import parse_module, run_passes
from triton_modules import LOWER, check_all, emitted
from xdsl.utils.exceptions import PassFailedException

from comet.passes.decompose import keep_reference
from comet.passes.functions import compute_functions
from comet.passes.triton_distributed import TritonDistributedPass

SIZES = {
    "one": {"M": 1, "N": 1, "K": 1},
    "prime": {"M": 37, "N": 101, "K": 53},
}
OPTIONS = {
    "full": "strategy=full",
    "twice": "strategy=partial between=recompute",
    "kept": "strategy=partial between=spill",
}
SWEPT = (
    'strategy=partial between={} factors="grid: M=3; REG/contract: K=2; '
    'REG/reduce: N=3; HBM: N=3"'
)


def compiled(text: str, options: str = "") -> str:
    return emitted(text, f"{H200},triton-distributed{{ranks=1 {options}}}")


def expect_all_ok(sources: dict[str, str], folder: Path) -> None:
    reports = check_all(sources, folder)
    assert {name: report["ok"] for name, report in reports.items()} == dict.fromkeys(
        sources, True
    )


@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
def test_any_size_and_strategy(text: str, tmp_path: Path) -> None:
    sources = {
        f"{size}_{option}": compiled(text.format(**extents), options)
        for size, extents in SIZES.items()
        for option, options in OPTIONS.items()
    }
    for between in ("recompute", "spill"):
        swept = compiled(text.format(**SIZES["prime"]), SWEPT.format(between))
        sources[f"swept_{between}"] = swept
    expect_all_ok(sources, tmp_path)


def test_any_graph_after_decomposition(tmp_path: Path) -> None:
    sources: dict[str, str] = {}
    for name, text in GRAPHS.items():
        module = parse_module(text)
        (function,) = compute_functions(module)
        keep_reference(module, function)
        for strategy in ("full", "partial", "none"):
            pipeline = f"{H200},fuse{{strategy={strategy}}},tile,{LOWER}"
            sources[f"{name}_{strategy}"] = emitted(str(module), pipeline)
    expect_all_ok(sources, tmp_path)


def test_the_pipeline_is_its_parts() -> None:
    text = SOFTMAX.format(**SIZES["prime"])
    whole = run_passes(parse_module(text), f"{H200},triton-distributed")
    names = [part.name for part in TritonDistributedPass().parts()]
    spelled = ",".join(names).replace("decompose,", "decompose{accumulator=f32},")
    spelled = spelled.replace("fuse", "fuse{strategy=auto}")
    apart = run_passes(parse_module(text), f"{H200},{spelled}")
    assert str(whole) == str(apart)


def test_several_ranks_are_refused() -> None:
    with pytest.raises(PassFailedException, match="ranks=2 is not supported"):
        run_passes(
            parse_module(SOFTMAX.format(M=8, N=8, K=8)),
            f"{H200},triton-distributed{{ranks=2}}",
        )
