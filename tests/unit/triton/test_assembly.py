"""The forms that passes choose are what the compilers make of them."""

import re
from collections.abc import Mapping

import pytest
from covering import EVERY_CASE, exhaustive
from gpu_graphs import H200, SOFTMAX
from gpu_programs import with_extents
from split_programs import MI300X, merging
from triton_modules import assembly_of, emitted

LOG2_E = {"sm_90": "0f3FB8AA3B", "gfx942": "0x3fb8aa3b"}
POWER_OF_TWO = {"sm_90": "ex2.approx", "gfx942": "v_exp_f32"}
PRODUCT = re.compile(r"mma\S*\.m\d+n\d+k\d+(?:\.row\.col)?\.f32\.(\w+)\.(\w+)")
STORE = re.compile(r"st\.global(?:\.v(\d))?\.b(\d+)")
ADD = "atom.global.gpu.acq_rel.add"


def product_in_memory(narrow: str) -> str:
    """Return the module of a product that a second kernel reads."""
    loop = "c_k" if narrow == "none" else "c_wide_k"
    tiles = f'factors="c: M=2 N=2; {loop}: K=1; p: M=16"'
    options = f"strategy=none narrow={narrow} {tiles}"
    text = SOFTMAX.format(M=128, K=64, N=256)
    return emitted(text, f"{H200},triton-distributed{{{options}}}")


def masked_in_all_iterations() -> str:
    """Return the module of causal attention with one loop."""
    extents = {"B": 1, "H": 1, "M": 512, "N": 512, "D": 64, "E": 64}
    text = with_extents("attention_causal", extents)
    tiles = 'factors="o: B=1 H=1 M=8 warps=4; m_n: N=8; products_d: D=1"'
    return emitted(text, f"{H200},triton-distributed{{unmask=none split=none {tiles}}}")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """Compile the modules for each target; return the assembly of their kernels."""
    texts: dict[str, list[str]] = {}
    for target, machine in (("sm_90", H200), ("gfx942", MI300X)):
        decode = merging("decode", machine)
        sources = {"decode": decode}
        if EVERY_CASE:
            sources["exp"] = decode.replace("tl.exp2(", "tl.exp(")
        if target == "sm_90":
            sources |= {name: product_in_memory(name) for name in ("none", "c")}
            sources["causal"] = masked_in_all_iterations()
        folder = tmp_path_factory.mktemp(target)
        for name, made in assembly_of(sources, folder, target).items():
            texts[f"{name} {target}"] = made
    return texts


@exhaustive
@pytest.mark.parametrize("target", LOG2_E)
def test_no_exponential_is_scaled(target: str, found: Mapping[str, list[str]]):
    """With `use-exp2` the factor of each is in that of the scores."""
    for name, scaled in (("exp", True), ("decode", False)):
        (text,) = found[f"{name} {target}"]
        assert POWER_OF_TWO[target] in text
        assert (LOG2_E[target] in text) == scaled


def test_positions_of_a_mask_have_32_bits(found: Mapping[str, list[str]]):
    """With a comparison of rows and columns, LLVM compares 8 times in 64 bits."""
    (text,) = found["causal sm_90"]
    assert len(re.findall(r"setp\.\w+\.s64", text)) == 1  # whether the loop ends
    assert len(re.findall(r"setp\.\w+\.s32", text)) >= 8


def test_products_read_the_type_of_their_operands(found: Mapping[str, list[str]]):
    """The weights of attention, sums in f32, are multiplied in f16."""
    (text,) = found["decode sm_90"]
    assert len(types := PRODUCT.findall(text)) >= 2
    assert set(types) == {("f16", "f16")}


def test_a_narrow_product_is_stored_in_half_the_bits(found: Mapping[str, list[str]]):
    wide, narrow = (
        sum(int(count or 1) * int(bits) for count, bits in STORE.findall(text))
        for text in (found["none sm_90"][0], found["c sm_90"][0])
    )
    assert wide == 2 * narrow > 0


def test_the_last_program_is_found_by_one_addition(found: Mapping[str, list[str]]):
    """Stores, a barrier, and an addition that publishes them; nothing waits."""
    (text,) = found["decode sm_90"]
    assert text.count(ADD) == len(re.findall(r"\b(?:atom|red)\.", text)) == 1
    assert not re.search(r"\bld\.\S*(acquire|volatile)", text)
    before = text[: text.index(ADD)]
    assert before.rindex("bar.sync") > before.rindex("st.global")
    (text,) = found["decode gfx942"]
    (add,) = re.findall(r"global_atomic\w+", text)
    order = [text.index(word) for word in ("buffer_wbl2 sc1", add, "buffer_inv sc1")]
    assert order == sorted(order)
