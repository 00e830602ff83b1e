"""Loops in two parts, of which one has no mask: the results stay."""

import re
from pathlib import Path

import pytest
from covering import EVERY_CASE, exhaustive
from gpu_graphs import KEY_GRADIENTS
from masked_programs import causal, decode, first_rows_see_nothing, with_term
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import check_all, compile_all, emitted, hardware, wrong
from xdsl.utils.exceptions import PassFailedException

H200 = hardware("h200x1.yaml")
PARTS = (" in range(0, middle,", " in range(middle, ")


def test_loops_in_two_parts_mean_the_same(tmp_path: Path):
    tiles = 'unmask=all factors="o: B=1 H=2 M={} E=1; m_n: N={}; products_d: D=1"'
    square = causal(128, 128), tiles.format(8, 4)
    programs = {
        **(
            {
                "causal": (causal(64, 256), "unmask=all"),
                "square": square,
                "odd": (causal(37, 301), tiles.format(3, 19)),
            }
            if EVERY_CASE
            else {}
        ),
        "short rows": (causal(45, 55), tiles.format(3, 4)),
        "lengths": (decode(200), "unmask=all"),
        "blind": (first_rows_see_nothing(), tiles.format(16, 8)),
    }
    sources = {
        name: emitted(text, f"{H200},triton-distributed{{strategy=full {options}}}")
        for name, (text, options) in programs.items()
    }
    for source in sources.values():
        assert all(part in source for part in PARTS)
        first, second = (source.index(part) for part in PARTS)
        assert "tl.where(visible" not in source[first:second]
        assert "tl.where(visible" in source[second:]
    assert not wrong(sources, tmp_path)


@exhaustive
@pytest.mark.parametrize("gpu", ["h200x1", pytest.param("mi300x8", marks=exhaustive)])
def test_loops_that_a_mask_starts_have_it_first(gpu: str, tmp_path: Path):
    """Sums without iter_args go on in the second part."""
    sizes = ((37, 37), (64, 64), (70, 33), (33, 70))
    sources = {
        f"{rows} x {keys}": emitted(
            KEY_GRADIENTS.format(M=rows, N=keys),
            f"{hardware(f'{gpu}.yaml')},triton-distributed{{unmask=all "
            f'strategy=partial factors="d: K=2 N={-(-keys // 16)}; d_r: R=3; '
            f'd_m: M={-(-rows // 16)}"}}',
        )
        for rows, keys in sizes
    }
    for source in sources.values():
        masked, plain = (source.index(part) for part in (" in range(start,", PARTS[1]))
        assert masked < source.index("tl.where(seen") < plain
        assert "tl.where(seen" not in source[plain:]
    assert not wrong(sources, tmp_path)


def lowered(text: str, passes: str) -> str:
    return str(run_passes(parse_module(text), passes))


PASSES = f"{H200},decompose{{accumulator=f32}},stream,fuse{{strategy=full}},tile"


def test_the_property_changes_no_meaning():
    text = causal(64, 256)
    before = run_passes(parse_module(text), PASSES)
    after = run_passes(before, "unmask-loops{loops=all}")
    assert "unmask" in str(after)
    assert_same_meaning(before, after, "main")


def test_only_masks_that_select_can_be_left_out():
    assert "unmask" in lowered(causal(64, 256), f"{PASSES},unmask-loops{{loops=all}}")
    term = with_term(1.7e38)
    assert "unmask" not in lowered(term, f"{PASSES},unmask-loops{{loops=all}}")


def test_it_is_chosen_where_it_is_faster():
    large = causal(4096, 4096).replace("x16xf16", "x128xf16").replace("1x2x", "4x32x")
    passes = f"{PASSES},unmask-loops"
    assert "unmask" in lowered(large, passes)
    assert "unmask" not in lowered(large, f"{passes}{{loops=none}}")
    # The length of each sequence is not known: all iterations may need the mask.
    assert "unmask" not in lowered(decode(4096), passes)


def test_loops_that_a_mask_starts_are_asked_for():
    text = KEY_GRADIENTS.format(M=4096, N=4096)
    tiles = 'factors="d: K=2 N=64; d_r: R=3; d_m: M=64"'
    before = lowered(
        text,
        f"{H200},decompose{{accumulator=f32}},stream,fuse{{strategy=partial}},"
        f"tile{{{tiles}}}",
    )
    assert "unmask" in lowered(before, "unmask-loops{loops=all}")
    assert "unmask" not in lowered(before, "unmask-loops")


def test_a_mask_that_bounds_nothing_is_an_error():
    text = causal(64, 256)
    before = lowered(text, f"{PASSES},unmask-loops{{loops=all}},outline-kernels")
    with pytest.raises(PassFailedException, match="run bound-loops first"):
        lowered(before, "lower-to-triton")


@exhaustive
def test_mutants_of_the_border_are_wrong(tmp_path: Path):
    """A tile more or less without a mask, or with one, and results differ."""
    tiles = 'factors="o: B=1 H=2 M=8 E=1; m_n: N=4; products_d: D=1"'
    source = emitted(
        causal(128, 128),
        f"{H200},triton-distributed{{strategy=full unmask=all {tiles}}}",
    )
    whole = re.compile(r"range\(0, middle, BLOCK_N\)")
    rest = re.compile(r"range\(middle, stop, BLOCK_N\)")
    assert whole.search(source)
    assert rest.search(source)
    mutants = {
        "one tile more": whole.sub("range(0, middle + BLOCK_N, BLOCK_N)", source),
        "all without": whole.sub("range(0, stop, BLOCK_N)", source),
        "none masked": rest.sub("range(stop, stop, BLOCK_N)", source),
        "one tile less": whole.sub("range(0, middle - BLOCK_N, BLOCK_N)", source),
    }
    reports = check_all(mutants, tmp_path)
    assert [name for name, report in reports.items() if report["ok"]] == []


@exhaustive
def test_it_compiles_without_spills(tmp_path: Path):
    text = causal(1024, 1024).replace("x16xf16", "x64xf16")
    targets = (("h200x1", "sm_90"), ("mi300x8", "gfx942"))
    for gpu, target in targets:
        source = emitted(
            text, f"{hardware(f'{gpu}.yaml')},triton-distributed{{unmask=all}}"
        )
        (kernel,) = compile_all({gpu: source}, tmp_path, target)
        assert kernel["spills"] == 0
