"""Programs that are clusters of thread blocks: chosen, right, compiled, or rejected."""

import json
import re
from pathlib import Path

import pytest
from covering import one_of
from gpu_graphs import H200, LAYERNORM, SOFTMAX
from gpu_ranks import H200X8, MI300X8, RMSNORM
from semantics import parse_module, run_passes
from torch_python import run_python
from triton_modules import check_all, compile_all, emitted, printed
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.groups import elementary_ops
from comet.passes.schedule.fuse.gpu.plan import loop_nests, plan_form
from comet.passes.schedule.fuse.gpu.trial import Trials
from comet.passes.schedule.fuse.strategy import Strategy


def with_triton(version: str, machine: str = H200) -> str:
    """Return the pass that attaches a GPU for kernels of a version of Triton."""
    return machine.replace("}", f' triton="{version}"}}')


NEW = with_triton("3.8")
LARGE = {"M": 16384, "N": 1024, "K": 4096}


def given(kernel: str, cluster: int, rows: int = 1, warps: int = 4) -> str:
    """Return options with one number of clusters."""
    launch = f"warps={warps} stages=2 group=1 cluster={cluster}"
    return f'strategy=full factors="{kernel}: M={rows} {launch}"'


def planned(text: str, machine: str, options: str = "") -> str:
    """Return the plan that the pipeline chooses."""
    pipeline = f"{machine},triton-distributed{{to=dataflow {options}}}"
    (function,) = compute_functions(run_passes(parse_module(text), pipeline))
    return str(function.attributes["comet.plan"])


@one_of(2)
@pytest.mark.parametrize("text", [SOFTMAX, LAYERNORM], ids=["softmax", "layernorm"])
def test_clusters_are_chosen_where_triton_compiles_them(text: str):
    """The rows of 1024 of a product are two kernels otherwise."""
    text = text.format(**LARGE)
    assert "cluster=4" in planned(text, NEW)
    for machine in (H200, with_triton("3.7")):
        assert "cluster" not in planned(text, machine)


def test_stores_of_newer_versions_take_registers():
    """They have the layout of whole rows, so that 128 x 1024 numbers are too many."""
    text = SOFTMAX.format(**LARGE)
    assert "M=128 " in planned(text, NEW, "strategy=full")
    assert "M=256 " in planned(text, with_triton("3.9"), "strategy=full")


def test_a_given_cluster_is_in_the_ir_and_the_plan():
    text = SOFTMAX.format(M=128, N=256, K=64)
    module = run_passes(
        parse_module(text),
        f"{NEW},triton-distributed{{to=dataflow {given('p', 2)}}}",
    )
    assert "stages = 2, group = 1, cluster = 2>" in str(module)
    assert 'triton = "3.8"' in str(module)
    plan = planned(text, NEW, given("p", 2))
    assert "p: M=1 warps=4 stages=2 group=1 cluster=2" in plan
    assert "cluster" not in planned(text, NEW, given("p", 1))


def test_clusters_compute_the_same(tmp_path: Path):
    """Rows and columns that tiles do not divide; the interpreter has whole programs."""
    kernels = {"softmax": (SOFTMAX, "p"), "layernorm": (LAYERNORM, "y")}
    kernels["rmsnorm"] = (RMSNORM, "y")
    sizes = {"M": 37, "N": 200, "K": 45}
    sources = {
        f"{name} {cluster}": emitted(
            text.format(**sizes), f"{NEW},triton-distributed{{{given(out, cluster)}}}"
        )
        for name, (text, out) in kernels.items()
        for cluster in (2, 4)
    }
    options = f"{given('p', 2)} stores=all"
    staged = SOFTMAX.format(M=37, N=512, K=45)
    sources["staged 2"] = emitted(staged, f"{NEW},triton-distributed{{{options}}}")
    assert "make_tensor_descriptor" in sources["staged 2"]
    assert all(f"num_ctas={name[-1]}" in text for name, text in sources.items())
    assert all(report["ok"] for report in check_all(sources, tmp_path).values())


def test_compiled_clusters_load_from_other_thread_blocks(tmp_path: Path):
    text = SOFTMAX.format(M=128, N=512, K=128)
    source = emitted(text, f"{NEW},triton-distributed{{{given('p', 2)}}}")
    if triton_version() < (3, 8):
        with pytest.raises(AssertionError, match=r"which Triton 3\.8 or newer"):
            compile_all({"clusters": source}, tmp_path, "sm_90")
        return
    (kernel,) = compile_all({"clusters": source}, tmp_path, "sm_90")
    assert kernel["remote"]
    assert kernel["matrix"]
    assert kernel["faults"] == []
    with pytest.raises(AssertionError, match="and gfx942 has none"):
        compile_all({"clusters": source}, tmp_path, "gfx942")


def triton_version() -> tuple[int, ...]:
    """Return the version of Triton that is installed."""
    done = run_python(["-c", "import triton; print(triton.__version__)"])
    return tuple(map(int, done.stdout.split(".")[:2]))


OLDER = """
import json, triton
triton.__version__ = "3.7.1"
from comet.runtime.language import expect_triton
try:
    expect_triton("3.8")
    print(json.dumps(""))
except ValueError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.parametrize("interpreted", [False, True])
def test_an_older_triton_is_an_error(interpreted: bool):
    """Not in the interpreter, which runs programs whole."""
    environment = {"TRITON_INTERPRET": str(int(interpreted))}
    done = run_python(["-c", OLDER], environment)
    message = json.loads(done.stdout)
    assert ("which Triton 3.8 or newer compiles, and this is 3.7.1" in message) == (
        not interpreted
    )


RESIDUAL = """
!a = tensor<{M}x{K}xbf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xbf16, #compound.dims<K, N>>
!c = tensor<{M}x{N}xbf16, #compound.dims<M, N>>
!f = tensor<{M}x{N}xf32, #compound.dims<M, N>>
!r = tensor<{M}xf32, #compound.dims<M>>
func.func @f(%a: !a, %b: !b, %x: !c) -> !f {{
  %p = compound.contract %a, %b : !a, !b -> !f
  %w = compound.cast %x : !c -> !f
  %s = compound.map add %p, %w : !f, !f -> !f
  %m = compound.reduce max %s : !f -> !r
  %y = compound.map sub %s, %m : !f, !r -> !f
  func.return %y : !f
}}
"""
VECTOR = """
!a = tensor<{M}x{K}xbf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xbf16, #compound.dims<K, N>>
!f = tensor<{M}x{N}xf32, #compound.dims<M, N>>
!g = tensor<{N}xf32, #compound.dims<N>>
!r = tensor<{M}xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @f(%a: !a, %b: !b, %v: !g) -> !f {{
  %p = compound.contract %a, %b : !a, !b -> !f
  %m = compound.reduce max %p : !f -> !r
  %w = compound.reduce max %v : !g -> !s
  %l = compound.map add %m, %w : !r, !s -> !r
  %y = compound.map sub %p, %l : !f, !r -> !f
  func.return %y : !f
}}
"""
PRODUCT = """
!a = tensor<{M}x{K}xbf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xbf16, #compound.dims<K, N>>
!f = tensor<{M}x{N}xf32, #compound.dims<M, N>>
func.func @f(%a: !a, %b: !b) -> !f {{
  %y = compound.contract %a, %b : !a, !b -> !f
  func.return %y : !f
}}
"""
SIZES = {"M": 256, "N": 256, "K": 64}
SCATTERED = """
!a = tensor<{M}x{K}xbf16, #compound.dims<M, K>>
!b = tensor<{K}x{N}xbf16, #compound.dims<K, N>>
!f = tensor<{M}x{N}xf32, #compound.dims<M, N>>
!i = tensor<{M}xi32, #compound.dims<M>>
!t = tensor<64x{N}xf32, #compound.dims<V, N>>
!r = tensor<{M}xf32, #compound.dims<M>>
func.func @f(%a: !a, %b: !b, %i: !i) -> !t {{
  %p = compound.contract %a, %b : !a, !b -> !f
  %m = compound.reduce max %p : !f -> !r
  %s = compound.map sub %p, %m : !f, !r -> !f
  %y = compound.scatter_add %s, %i into "V" : !f, !i -> !t
  func.return %y : !t
}}
"""


@pytest.mark.parametrize(
    ("text", "machine", "options", "reason"),
    [
        pytest.param(
            SOFTMAX, H200, given("p", 2, 2), "at most 1 thread blocks here", id="Triton"
        ),
        pytest.param(
            SOFTMAX,
            with_triton("3.8", MI300X8),
            given("p", 2, 2),
            "most_cluster_blocks in the hardware file",
            id="GPU",
        ),
        pytest.param(
            SOFTMAX, NEW, given("p", 32, 2), "at most 16 thread blocks", id="too many"
        ),
        pytest.param(
            SOFTMAX, NEW, given("p", 3, 2), "cluster is a power of two", id="three"
        ),
        pytest.param(
            SOFTMAX,
            NEW,
            given("p", 8, 2),
            "its tiles have 128 of M and 256 of N, and Triton divides the columns",
            id="few columns",
        ),
        pytest.param(
            SOFTMAX, NEW, given("p", 2), "at most 128 rows", id="too many rows"
        ),
        pytest.param(
            PRODUCT,
            NEW,
            'strategy=full factors="y: M=2 N=2 warps=4 stages=2 group=1 cluster=2"',
            "no whole rows, but a loop over N, unlike those of strategy=full; leave",
            id="columns of the grid",
        ),
        pytest.param(
            SOFTMAX.replace("f16", "f32"),
            NEW,
            given("p", 2, 2),
            "one product of two matrices of f16 or bf16",
            id="f32",
        ),
        pytest.param(
            RESIDUAL,
            NEW,
            given("y", 2, 2),
            "it loads %x, which Triton would lay out by rows",
            id="residual",
        ),
        pytest.param(
            VECTOR,
            NEW,
            given("y", 2, 2),
            "it reduces other values than rows over N, or nothing",
            id="vector",
        ),
        pytest.param(
            SCATTERED, NEW, given("s", 2, 2), "it adds rows to memory", id="scatter"
        ),
        pytest.param(
            SOFTMAX,
            NEW,
            'ctas=2 dim=N factors="p: M=2 cluster=2"',
            "its programs exchange with those of other ranks or of their group",
            id="groups",
        ),
        pytest.param(
            SOFTMAX,
            with_triton("3.8", H200X8),
            'ranks=2 dim=M strategy=full factors="p: M=2 cluster=2"',
            "its programs exchange with those of other ranks or of their group",
            id="ranks",
        ),
    ],
)
def test_clusters_that_cannot_be(text: str, machine: str, options: str, reason: str):
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        emitted(text.format(**SIZES), f"{machine},triton-distributed{{{options}}}")


def test_clusters_are_not_persistent():
    text, options = SOFTMAX.format(M=512, N=256, K=64), given("p", 2, 4)
    left = emitted(text, f"{NEW},triton-distributed{{{options} persist=all}}")
    assert "num_ctas=2" in left
    assert "for tile in" not in left
    with pytest.raises(PassFailedException, match="which are not persistent"):
        emitted(text, f'{NEW},triton-distributed{{{options} persist="f_kernel=2"}}')


def test_clusters_have_no_producer_warps():
    factors = 'factors="p: M=2 warps=4 stages=2 group=1 cluster=2 specialize=1"'
    with pytest.raises(PassFailedException, match="have no producer warps"):
        emitted(
            SOFTMAX.format(**SIZES),
            f"{NEW},triton-distributed{{strategy=full {factors}}}",
        )


def test_descriptors_store_and_do_not_load_for_several_blocks():
    text, options = SOFTMAX.format(**SIZES), given("p", 2, 2)
    loads = emitted(
        text, f"{NEW},triton-distributed{{{options} copies=descriptors stores=none}}"
    )
    assert "make_tensor_descriptor" not in loads
    stores = emitted(text, f"{NEW},triton-distributed{{{options} stores=all}}")
    assert stores.count("make_tensor_descriptor") == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [(512, "in 1 parts; give one of these"), (1024, "and whole ones in clusters")],
)
def test_descriptors_store_the_columns_of_each_block(columns: int, reason: str):
    """At most 256 of them; parts of all columns would pass between the blocks."""
    text, options = SOFTMAX.format(M=256, N=columns, K=64), given("p", 2, 4)
    stores = emitted(text, f"{NEW},triton-distributed{{{options} stores=all}}")
    assert ("make_tensor_descriptor" in stores) == (columns == 512)
    with pytest.raises(PassFailedException, match=reason):
        emitted(text, f'{NEW},triton-distributed{{{options} stores="f_kernel=2"}}')


TWO = """
!a = tensor<256x64xf16>
!b = tensor<64x256xf16>
!c = tensor<256x256xf16>
func.func @f(%a: !a, %b: !b, %e: !a, %d: !b) -> (!c, !c) {
  %p = compound.gemm_softmax %a, %b : (!a, !b) -> !c
  %q = compound.gemm_softmax %e, %d : (!a, !b) -> !c
  func.return %p, %q : !c, !c
}
"""


def test_clusters_have_a_launch_of_their_own():
    launch = "M=2 warps=4 stages=2 group=1"
    other = launch.replace("M", "M1")
    factors = f'strategy=full factors="p: {launch} cluster=2; q: {other}"'
    alone = emitted(TWO, f"{NEW},triton-distributed{{{factors}}}")
    assert alone.count("num_warps=4") == 2
    assert alone.count("num_ctas=2") == 1
    names = "f_p_kernel f_q_kernel"
    with pytest.raises(PassFailedException, match=r"cannot be one launch: .*clusters"):
        emitted(TWO, f'{NEW},triton-distributed{{{factors} launches="{names}"}}')


@pytest.mark.parametrize("columns", [1024, 4096])
def test_the_lower_bound_of_a_kernel_is_below_its_time_in_clusters(columns: int):
    """With 4096 columns only clusters have whole rows."""
    text = SOFTMAX.format(M=16384, N=columns, K=4096)
    before = f"{NEW},decompose{{accumulator=f32}},stream,use-exp2"
    module = run_passes(parse_module(text), before)
    trials = Trials(attached_system(module))
    (function,) = compute_functions(module)
    ops = tuple(elementary_ops(function))
    full = Strategy("full", full_rows=True)
    forms, outs = Forms(trials, (full,)), (ops[-1].results[0],)
    for nest in loop_nests((full,), ops):
        seconds = trials.seconds(plan_form(nest, ops, outs))
        assert forms.least_of(nest, ops, outs) <= seconds < 1


def test_the_head_of_a_module_says_what_clusters_need():
    module = run_passes(
        parse_module(SOFTMAX.format(**SIZES)),
        f"{NEW},triton-distributed{{{given('p', 2, 2)}}}",
    )
    head, _ = printed(module).split("@triton.jit", maxsplit=1)
    assert "for Triton 3.8 or" in head
    assert 'expect_triton("3.8")' in head
