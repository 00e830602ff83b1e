"""Graphs of torch become programs that mean the same, and run inside of models."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from covering import EVERY_CASE
from paths import ROOT, SUPPORT
from shown_pages import flat, page, pattern
from torch_python import run_python

CASES = SUPPORT / "pytorch_cases.py"
MODELS = SUPPORT / "pytorch_models.py"
INTERPRETED = {"TRITON_INTERPRET": "1"}
PAGE = page("pytorch.md")
NAMES = re.compile(r'^    "([^"]+)": \(', re.M)
TRANSLATED, REFUSED = (
    NAMES.findall(part) for part in CASES.read_text().split("REFUSED:")
)
RANDOM = 500 if EVERY_CASE else 8
"""The number of random functions."""
UNTRANSLATED = "aten.sinh runs in torch: there is no translation of the op aten.sinh"
WAY_OUT = "compute it outside of the model, or by ops that docs/pytorch.md lists"
TOLERANCES = {"halves": 2e-3}
"""The largest errors, 1e-5 for others: products of f16 are rounded."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what functions, models and the code of the page do, in one process."""
    blocks = [text for kind, text in PAGE.blocks if kind == "python"]
    file = tmp_path_factory.mktemp("page") / "blocks.json"
    file.write_text(json.dumps(blocks))
    arguments = [MODELS, file, str(int(EVERY_CASE)), str(RANDOM)]
    done = run_python(arguments, INTERPRETED, ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def outcomes(found: dict[str, Any]) -> dict[str, float | str]:
    """Return the errors, or the refusals, of all cases."""
    return found["cases"]


@pytest.mark.parametrize("name", TRANSLATED)
def test_programs_mean_what_torch_computes(name: str, outcomes: dict[str, float | str]):
    found = outcomes[name]
    assert isinstance(found, float), found
    assert found < TOLERANCES.get(name, 1e-5)


def test_random_functions_keep_their_meaning(outcomes: dict[str, float | str]):
    found = [outcomes[f"random {seed}"] for seed in range(RANDOM)]
    errors = [each for each in found if isinstance(each, float)]
    assert len(errors) > 0.8 * RANDOM
    assert max(errors) < 1e-4
    assert {each for each in found if isinstance(each, str)} <= {*REFUSED}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_translation_is_named(name: str, outcomes: dict[str, float | str]):
    found = outcomes[name]
    assert isinstance(found, str)
    assert name in found


def test_models_compute_and_learn_the_same(found: dict[str, Any]):
    """A model with an op that torch runs; larger ones by `make exhaustive`."""
    assert max(found["errors"].values()) < 1e-5
    *constant, slow = found["warnings"]
    assert slow.startswith(UNTRANSLATED)
    assert re.fullmatch(r" \(\S+/pytorch_models.py:\d+\)", slow[len(UNTRANSLATED) :])
    (gradient,) = constant
    assert gradient.startswith("aten.cosh runs in torch: there is no translation of ")


def test_convolutions_are_kernels(found: dict[str, Any]):
    """Gradients by `make exhaustive`."""
    assert found["convolved"] < 1e-5


def test_maxima_and_minima_keep_nan(found: dict[str, Any]):
    assert found["keeps nan"] is True


def test_infinities_are_no_warnings(found: dict[str, Any]):
    assert found["infinite"] is True


def test_what_is_the_same_along_an_axis_can_be_stored(found: dict[str, Any]):
    assert found["copies"] is True


def test_attention_of_graphs_inside_is_one_op(found: dict[str, Any]):
    assert found["attention inside"] is True


def test_a_shape_that_numbers_decide_runs_in_torch(found: dict[str, Any]):
    """One warning says so of all ops that compute with it."""
    error, slow = found["changing shape"]
    assert error < 1e-5
    reason = (
        "and 2 more run in torch: there is no translation of a shape that the numbers "
        "of a tensor decide"
    )
    assert any(each.startswith(f"aten.mul, aten.exp {reason}") for each in slow)


def test_memory_is_as_torch_expects(found: dict[str, Any]):
    """Views read strides of torch; a result that changes in place is no other's."""
    assert found["memory"] == [True] * 3


def test_positions_can_be_a_result(found: dict[str, Any]):
    assert found["positions"] is True


def test_experts_are_counted(found: dict[str, Any]):
    """What torch checks of them runs in torch, and a kernel adds a constant."""
    assert found["counts"] is True


def test_complex_numbers_are_pairs_in_kernels(found: dict[str, Any]):
    """A table of them is an argument, which is viewed as real numbers."""
    assert found["complex"] < 1e-5


def test_numbers_of_the_host_are_copied_to_the_device(found: dict[str, Any]):
    assert found["devices"] == ["meta"] * 3


def test_the_sign_of_a_part_is_no_op_before_it_is_joined(found: dict[str, Any]):
    assert "compound.concat" in found["turned"]
    assert "compound.map neg" not in found["turned"]


def test_layers_have_the_same_dimensions(found: dict[str, Any]):
    """Their equal products have equal names of dimensions, in the same order."""
    types = re.findall(r"compound.contract .* : (.*)", found["layers"])
    count = len(types) // 3
    first, second, third = (types[i * count : (i + 1) * count] for i in range(3))
    assert count > 7
    assert first == second == third


def test_attention_has_the_type_of_autocast(found: dict[str, Any]):
    name, error = found["autocast"]
    assert name == "torch.bfloat16"
    assert 0 < error < 0.05


def test_a_model_with_casts_is_exported(found: dict[str, Any]):
    assert found["widened"].count("compound.cast") == 1


def test_a_program_of_torch_export_is_a_model(found: dict[str, Any]):
    """It takes the inputs of the model, and has the same program."""
    first, second = found["of export"]
    assert first == second


def test_an_op_has_the_line_of_the_model(found: dict[str, Any]):
    """A pass that refuses it names both."""
    op = r"in @main, 'compound.gather' op %index: error: fuse: "
    assert re.match(rf"\S+/pytorch_models.py:\d+: {op}", found["located"])


def test_results_of_narrow_floats_are_rounded_once(found: dict[str, Any]):
    lines = found["in halves"].splitlines()
    assert not [each for each in lines if re.search(r"(map|reduce) .*xf16", each)]


def test_an_op_with_an_effect_runs_in_torch(found: dict[str, Any]):
    """The token of its effect is a tensor of the graph, and None when that runs."""
    assert found["inverted"] is True


def test_mistakes_are_one_sentence(found: dict[str, Any]):
    assert found["strict"].startswith(UNTRANSLATED)
    assert found["options"] == [
        "the back end 'comet' has no option 'hardwear'; it has hardware, pipeline, "
        "pipeline_of_ranks, cache, cuda_graphs, strict",
        "the back end 'comet' needs a hardware file: options={'hardware': ..}, or the "
        "variable COMET_HARDWARE",
        "the back end 'comet' has no mode 'max-autotune'; it has 'reduce-overhead', "
        "for CUDA graphs",
    ]
    exported = [
        re.sub(r"\S+/pytorch_models.py:\d+", "FILE:LINE", each)
        for each in found["exported"]
    ]
    assert exported == [
        "from_torch: sinh (aten.sinh), FILE:LINE: there is no translation of the op "
        f"aten.sinh; {WAY_OUT}",
        "the model changes running_mean; call its eval(), or compute without changes",
        "from_torch: a model is a module or a function, not int",
        "from_torch: input 1 is a tensor, not str; give a function of tensors, which "
        "calls the model with all else",
        "from_torch: the model does not take 0 inputs, missing a required argument: "
        "'input'",
        "from_torch: the model decides by the value of a tensor; compute both cases, "
        "and choose with torch.where",
        "from_torch: all results are arguments or views of them, so there is nothing "
        "to compute; return what the model computes",
        "from_torch: inputs_0 (an argument): there is no translation of the type "
        "torch.float64, which is none of float16, bfloat16, float32, int8, int32, "
        f"int64, bool; {WAY_OUT}",
        "from_torch: torch.export does not trace the model (DataDependentOutput"
        "Exception: aten.equal.default); call torch.export.export with it, which says "
        "where",
        "from_torch: torch.export does not trace the model (RuntimeError: a and b must "
        "have same reduction dim, but got [2, 3] X [4, 5].); call torch.export.export "
        "with it, which says where",
    ]


def test_a_folder_keeps_programs(found: dict[str, Any]):
    """They are compiled once, and again for another hardware file."""
    assert found["cached"] == {
        "counts": [1, 1, 2],
        "right": True,
        "kept": 3,
        "error": "no/h200.yaml: No such file or directory",
    }


def test_the_page_shows_what_its_code_prints(found: dict[str, Any]):
    shown = [
        text
        for (first, _), (second, text) in pairwise(PAGE.blocks)
        if (first, second) == ("python", "text")
    ]
    for text, printed in zip(shown, found["printed"], strict=True):
        assert pattern(text).fullmatch(flat(printed)), printed
