"""Loops that end where a mask hides all that follows: the results stay."""

from pathlib import Path

from semantics import parse_module, run_passes
from triton_modules import check_all, emitted, hardware

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{ranks=1}}"


def causal(queries: int, keys: int) -> str:
    """Return causal attention of two heads."""
    q, k = (f"tensor<1x2x{count}x16xf16>" for count in (queries, keys))
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = compound.attention %q, %k, %v causal : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}"""


def decode(keys: int) -> str:
    """Return flash decode of sequences of several lengths."""
    q, k = "tensor<3x2x3x16xf16>", f"tensor<3x2x{keys}x16xf16>"
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}, %lens: tensor<3xi32>) -> {q} {{
      %o = compound.flash_decode %q, %k, %v, %lens
        : ({q}, {k}, {k}, tensor<3xi32>) -> {q}
      func.return %o : {q}
    }}"""


def first_rows_see_nothing() -> str:
    """Return attention in elementary ops whose mask hides all keys of three queries."""
    module = run_passes(parse_module(causal(256, 256)), "decompose{accumulator=f32}")
    text = str(module)
    more = next(line for line in text.splitlines() if "%more = " in line)
    return text.replace(more, more.replace("0.000000e+00", "-3.000000e+00"))


def test_bounded_loops_mean_the_same(tmp_path: Path):
    programs = {
        "causal": causal(64, 256),
        "odd": causal(37, 301),
        "square": causal(128, 128),
        "lengths": decode(200),
        "blind": first_rows_see_nothing(),
    }
    sources = {name: emitted(text, ONE_GPU) for name, text in programs.items()}
    assert [name for name in sources if " in range(0, stop," not in sources[name]] == []
    reports = check_all(sources, tmp_path)
    assert [name for name, report in reports.items() if not report["ok"]] == []
