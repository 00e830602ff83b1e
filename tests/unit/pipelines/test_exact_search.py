"""comet-accelerator{search=exact}: its passes, its record, and its errors."""

import pytest
from covering import exhaustive
from programs import graph_text
from semantics import comet_context, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.pipeline import run_settled
from comet.passes.pipelines.comet_accelerator import CometAcceleratorPass
from comet.passes.search import session
from comet.passes.sharding.distribute import DistributePass
from comet.tools.diagnostics import UsageError
from comet.tools.option_check import checked

EDGE = "samples/hardware/edge.yaml"
GEMM = graph_text("gemm", (8, 8, 16))


def attached(text: str = GEMM) -> ModuleOp:
    return run_passes(parse_module(text), f'attach-hardware{{path="{EDGE}"}}')


def latency_of(module: ModuleOp) -> float:
    (mapping,) = (op for op in module.body.block.ops if isinstance(op, MappingOp))
    figures = estimate_of(mapping)
    assert figures is not None
    return figures.latency


@exhaustive
def test_exact_search_is_never_worse_and_leaves_its_passes():
    quick, exact, again = attached(), attached(), attached()
    CometAcceleratorPass().apply(comet_context(), quick)
    with session() as searched:
        passes = run_settled(
            [CometAcceleratorPass(search="exact")], comet_context(), exact
        )
    assert latency_of(exact) <= latency_of(quick)
    run_settled(passes, comet_context(), again)
    assert str(again) == str(exact)
    (row,) = searched.choices[-1].rows
    assert row.cost is not None
    assert row.cost.latency == latency_of(exact)
    assert row.limit.endswith("gap 0.00 %, proven")


def test_options_limit_the_search():
    module = attached()
    options = CometAcceleratorPass(search="exact", dim=("N",), strategy="full")
    passes = run_settled([options], comet_context(), module)
    dims = [each.dim for each in passes if isinstance(each, DistributePass)]
    assert dims == ["N"]


def test_a_mapping_that_the_tool_cannot_price_is_lowered_for_the_model():
    module = attached(graph_text("gemm_softmax", (16, 512, 2048)))
    search = CometAcceleratorPass(
        search="exact", dim=("N",), strategy="full", stream=False, loops="separate"
    )
    *_, last, _ = run_settled([search], comet_context(), module)
    assert last == LowerToCometPass(model="paper")
    assert latency_of(module) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("op=contract", "search=exact has no choice of 'op'"),
        ('factors="c_dram: M=2"', "search=exact has no choice of 'factors'"),
        ("bind=auto", "search=exact has no choice of 'bind'"),
        ("time_limit=nan", "the option 'time_limit' is a number, not nan"),
        ("time_limit=0", "'comet-accelerator': time_limit is a positive number of"),
    ],
)
def test_what_it_does_not_search_is_refused(options: str, message: str):
    spec = parse_spec(f"comet-accelerator{{search=exact {options}}}")
    with pytest.raises(UsageError, match=message):
        checked("pass", spec, CometAcceleratorPass)


def test_a_search_without_a_mapping_in_time_says_so():
    module = attached(graph_text("gemm_softmax", (1, 256, 2048)))
    search = CometAcceleratorPass(
        search="exact", dim=("N",), strategy="full", stream=False, time_limit=1e-9
    )
    with pytest.raises(
        PassFailedException, match="no valid mapping was found in 1e-09 s"
    ):
        search.apply(comet_context(), module)


def test_a_search_without_structures_names_the_pass():
    module = attached(
        """
        !x = tensor<8x8xf16, #compound.dims<M, N>>
        func.func @main(%x: !x) -> (!x, !x) {
          %y = compound.map add %x, %x : !x, !x -> !x
          func.return %x, %y : !x, !x
        }
        """
    )
    search = CometAcceleratorPass(search="exact", mappings="one")
    with pytest.raises(PassFailedException, match=r"^comet-accelerator: no valid mapp"):
        search.apply(comet_context(), module)
