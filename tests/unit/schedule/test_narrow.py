"""`fuse{narrow=..}`: products between kernels in the type of their operands."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from covering import exhaustive, one_of
from gpu_graphs import H200, LAYERNORM, SOFTMAX
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import check_all, emitted, hardware
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import bytes_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import NARROW
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu import choice
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import Group, Values
from comet.passes.schedule.fuse.gpu.narrow import (
    NarrowedProduct,
    store_narrow,
    unround,
    unrounded,
)
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy
from comet.passes.schedule.tile_tree import Spatial

LARGE = SOFTMAX.format(M=8192, K=1024, N=8192)
ODD = {"M": 37, "K": 21, "N": 150}
START = f"{H200},decompose{{accumulator=f32}},stream"
FORMS = ("none", "full", "partial between=spill", "priority")


def stored(text: str, options: str) -> list[int]:
    """Return the bytes of the results of each kernel but the last."""
    after = run_passes(parse_module(text), f"{START},fuse{{{options}}}")
    nodes = [op for op in after.walk() if isinstance(op, SpatialOp)]
    return [sum(map(bytes_of, node.outs)) for node in nodes[:-1]]


def narrow(text: str, options: str) -> str | None:
    """Return the products that `fuse` records as narrow."""
    after = run_passes(parse_module(text), f"{START},fuse{{{options}}}")
    (func,) = compute_functions(after)
    found = func.attributes.get(NARROW)
    return found.data if isinstance(found, StringAttr) else None


def test_a_product_between_kernels_has_half_the_bytes():
    whole = 8192 * 8192
    assert stored(LARGE, "strategy=auto") == [4 * whole]
    assert stored(LARGE, "strategy=auto narrow=auto") == [2 * whole]
    assert narrow(LARGE, "strategy=auto narrow=auto") == "c"


@one_of(2)
@pytest.mark.parametrize("strategy", FORMS)
def test_the_choice_can_be_given(strategy: str):
    """What `auto` chose and what is said by name is the same program."""
    texts = [
        str(
            run_passes(
                parse_module(LARGE),
                f"{START},fuse{{strategy={strategy} narrow={said}}}",
            )
        )
        for said in ("auto", "c")
    ]
    assert texts[0] == texts[1]


def test_a_product_that_is_cast_anyway_is_stored_once():
    """One reader takes %c as it is, another one a cast of it to the operands' type."""
    p = Program({"M": 4096, "K": 1024, "N": 4096, "D": 4096}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    y = p.contract("y", c, p.argument("w", "ND"), "MD")
    text = p.returning(y, p.reduce("s", "add", c, "M"))
    assert narrow(text, "strategy=auto narrow=auto") == "c"
    assert stored(text, "strategy=auto narrow=auto") == [2 * 4096 * 4096] * 2


def test_a_cast_of_a_product_that_is_not_narrow_stays():
    """In one kernel, both readers take the product from registers."""
    p = Program({"M": 16, "K": 16, "N": 16, "D": 16}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    y = p.contract("y", c, p.argument("w", "ND"), "MD")
    text = p.returning(y, p.reduce("s", "add", c, "N"))
    before, passes = parse_module(text), f"{START},fuse{{strategy=auto narrow=auto}}"
    assert narrow(text, "strategy=auto narrow=auto") == "none"
    assert_same_meaning(before, run_passes(before, passes), "main")


def test_kernels_are_priced_without_casts_that_are_undone():
    """A product in registers takes twice the room of its cast."""
    p = Program({"M": 32, "K": 64, "N": 32}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    text = p.returning(p.map("e", "exp", c), p.map("n", "neg", c))
    (func,) = compute_functions(parse_module(text))
    product = next(op.result for op in func.walk() if isinstance(op, ContractOp))
    before = str(func)
    with unrounded([store_narrow(product)]):
        assert str(func) != before
        unround(func)
    product.name_hint = "c"
    assert str(func) == before


def test_a_cast_that_a_kernel_stores_is_kept():
    p = Program({"M": 32, "K": 64, "N": 32}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    text = p.returning(c, p.map("e", "exp", c))
    (func,) = compute_functions(parse_module(text))
    product = next(op.result for op in func.walk() if isinstance(op, ContractOp))
    with unrounded([store_narrow(product)]):
        narrowed = str(func)
        unround(func)
        assert str(func) == narrowed


def test_only_the_best_choice_of_priority_fusion_is_narrowed(
    monkeypatch: pytest.MonkeyPatch,
):
    """It stores `c` alone; kernels of one contraction each would store `d`, too."""
    cast: list[str | None] = []

    def noted(product: SSAValue) -> NarrowedProduct:
        cast.append(product.name_hint)
        return store_narrow(product)

    monkeypatch.setattr(choice, "store_narrow", noted)
    p = Program({"M": 4096, "K": 1024, "N": 4096, "D": 64, "E": 64}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    d = p.contract("d", p.argument("x", "MD"), p.argument("w", "DE"), "ME")
    y = p.contract("y", p.map("e", "exp", d), p.argument("v", "EN"), "MN")
    text = p.returning(p.map("z", "add", c, y), p.reduce("s", "add", c, "M"))
    assert narrow(text, "strategy=auto narrow=auto") == "c"
    assert cast == ["c"]


def test_lower_bounds_hold_while_casts_come_and_go(monkeypatch: pytest.MonkeyPatch):
    """Bounds of ops without casts, with casts that are undone, and without again."""
    found: list[tuple[float, float]] = []

    class Noted(Forms):
        def __init__(self, trials: Trials, strategies: Iterable[Strategy]):
            super().__init__(trials, strategies)
            self.trials = trials

        def cheapest(self, ops: Group, outs: Values) -> Spatial:
            kernel = super().cheapest(ops, outs)
            found.append((self.least(ops, outs), self.trials.seconds(kernel)))
            return kernel

    monkeypatch.setattr(choice, "Forms", Noted)
    p = Program({"M": 4096, "K": 1024, "N": 4096, "D": 4096}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    y = p.contract("y", c, p.argument("w", "ND"), "MD")
    text = p.returning(y, p.reduce("s", "add", c, "M"))
    assert narrow(text, "strategy=priority narrow=auto") == "c"
    assert all(least <= seconds for least, seconds in found)


def test_marks_do_not_outlive_a_search_that_fails():
    p = Program({"M": 32, "K": 64, "N": 32}, "bf16", "f32")
    c = p.contract("c", p.argument("a", "MK"), p.argument("b", "KN"), "MN")
    (func,) = compute_functions(parse_module(p.returning(c)))
    product = next(op.result for op in func.walk() if isinstance(op, ContractOp))
    cast = store_narrow(product)
    unmarked = str(func)
    with suppress(KeyboardInterrupt), unrounded([cast]):
        assert str(func) != unmarked
        raise KeyboardInterrupt
    assert str(func) == unmarked


def test_what_stays_in_registers_is_not_rounded():
    small = SOFTMAX.format(**ODD)
    assert narrow(small, "strategy=full narrow=auto") == "none"
    wide = run_passes(parse_module(small), f"{START},fuse{{strategy=full}}")
    same = run_passes(parse_module(small), f"{START},fuse{{strategy=full narrow=auto}}")
    for func in compute_functions(same):
        del func.attributes[NARROW]
    assert str(wide) == str(same)


def test_wide_operands_have_no_narrower_type():
    assert narrow(LARGE.replace("f16", "f32"), "strategy=none narrow=auto") == "none"


def test_a_returned_product_keeps_its_type():
    text = """
    !A = tensor<32x16xf16, #compound.dims<M, K>>
    !B = tensor<16x64xf16, #compound.dims<K, N>>
    !C = tensor<32x64xf32, #compound.dims<M, N>>
    !L = tensor<32xf32, #compound.dims<M>>
    func.func @f(%a: !A, %b: !B) -> (!C, !L) {
      %c = compound.contract %a, %b : !A, !B -> !C
      %l = compound.reduce add %c : !C -> !L
      func.return %c, %l : !C, !L
    }"""
    assert narrow(text, "strategy=none narrow=auto") == "none"
    with pytest.raises(PassFailedException, match="%c, which has no narrower type to"):
        narrow(text, "strategy=none narrow=c")


def test_a_product_may_be_named_twice():
    text, given = SOFTMAX.format(**ODD), "strategy=none kernels="
    once = stored(text, f'{given}"c; p_1" narrow=c')
    assert once == stored(text, f'{given}"c; p_1" narrow="c %c"') == [2 * 37 * 150]


@pytest.mark.parametrize("strategy", ["auto", "priority", "none"])
def test_a_product_that_is_cast_anyway_is_not_named(strategy: str):
    text = """
    !A = tensor<32x16xf16, #compound.dims<M, K>>
    !B = tensor<16x64xf16, #compound.dims<K, N>>
    !C = tensor<32x64xf32, #compound.dims<M, N>>
    !Y = tensor<32x64xf16, #compound.dims<M, N>>
    func.func @f(%a: !A, %b: !B) -> !Y {
      %c = compound.contract %a, %b : !A, !B -> !C
      %y = compound.cast %c : !C -> !Y
      func.return %y : !Y
    }"""
    with pytest.raises(PassFailedException, match="%c, which all readers cast to f16"):
        narrow(text, f"strategy={strategy} narrow=c")


def test_a_name_that_no_value_has_is_rejected():
    with pytest.raises(PassFailedException, match="narrow names %q, which no op comp"):
        narrow(LARGE, "narrow=q")


@one_of(4)
@pytest.mark.parametrize("program", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
@pytest.mark.parametrize("strategy", FORMS)
def test_meaning(program: str, strategy: str):
    before = parse_module(program.format(**ODD))
    passes = f"{START},fuse{{strategy={strategy} narrow=c}},tile"
    assert_same_meaning(before, run_passes(before, passes), "f")


@exhaustive
def test_emitted_kernels(tmp_path: Path):
    """The wide product is cast where it is stored, and where it is loaded."""
    text = SOFTMAX.format(**ODD)
    sources = {
        strategy.split()[0]: emitted(
            text, f"{H200},triton-distributed{{strategy={strategy} narrow=c}}"
        )
        for strategy in FORMS
    }
    for source in sources.values():
        assert "c = c_wide.to(tl.float16)" in source
        assert re.search(r"c_wide(_\d)? = c(_tile)?\.to\(tl\.float32\)", source)
    for facts in check_all(sources, tmp_path).values():
        assert facts["ok"], facts


@one_of(2)
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_store_the_narrow_product(ranks: int, tmp_path: Path):
    """The product waits in memory for the statistics of all ranks."""
    text = SOFTMAX.format(M=32, K=16, N=64)
    options = f"ranks={ranks} dim=N between=spill narrow=c"
    source = emitted(text, f"{hardware('h200x8.yaml')},triton-distributed{{{options}}}")
    assert re.search(r"self\.c = rank\.empty\(.*torch\.float16\)", source)
    (facts,) = check_all({"ranks": source}, tmp_path).values()
    assert facts["ok"], facts
