"""What `lower-to-comet` emits is legal, for any size and factors that divide."""

import json
from dataclasses import dataclass
from io import StringIO
from itertools import product
from pathlib import Path

import pytest
from accelerators import EDGE
from comet_rules import check
from covering import EVERY_CASE, covering, one_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from paths import ROOT
from semantics import parse_module, run_passes
from tile_trees import fused, tiled
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from comet.codegen.comet import CometTarget, write_files
from comet.codegen.comet.reader import read_files
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.collective import Collective
from comet.dialects.comet import CollectiveOp, OperationOp
from comet.dialects.comet.attributes import Compute, ComputeAttr, SizesAttr
from comet.dialects.comet.kinds import REDUCES, REDUCTIONS
from comet.dialects.compound import Compound, ReduceKind
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes import get_all_passes
from comet.passes.comet.lower_to_comet.factors import loop_order
from comet.passes.comet.lower_to_comet.legality import check_legality
from comet.passes.comet.lower_to_comet.names import names_for

POSITIONAL = ("attention_causal", "ssm_scan")
"""Samples that need the positions of elements, which the files cannot say."""
DATA = ROOT / "tests" / "data" / "comet"

OPERANDS = {
    "gemm_softmax": {"a": "{M}x{K}", "b": "{K}x{N}"},
    "gemm_layernorm": {"a": "{M}x{K}", "b": "{K}x{N}", "gamma": "{N}", "beta": "{N}"},
}


@dataclass(frozen=True)
class Case:
    """One way through the pipeline."""

    operation: str
    hardware: str
    sizes: dict[str, int]
    axes: tuple[str, ...]
    at: str
    strategy: str
    factors: dict[str, str]

    @property
    def source(self) -> str:
        """The graph-level function."""
        operands = OPERANDS[self.operation]
        types = [f"tensor<{t}xf16>".format(**self.sizes) for t in operands.values()]
        names = [f"%{name}" for name in operands]
        out = "tensor<{M}x{N}xf16>".format(**self.sizes)
        arguments = ", ".join(
            f"{name}: {t}" for name, t in zip(names, types, strict=True)
        )
        epsilon = " epsilon 1.0e-05" if self.operation == "gemm_layernorm" else ""
        return (
            f"func.func @f({arguments}) -> {out} {{\n"
            f"  %h = compound.{self.operation} {', '.join(names)}{epsilon} : "
            f"({', '.join(types)}) -> {out}\n"
            f"  func.return %h : {out}\n}}"
        )

    @property
    def passes(self) -> str:
        """The pipeline."""
        hardware = ROOT / "samples" / "hardware" / f"{self.hardware}.yaml"
        return (
            f'attach-hardware{{path="{hardware}"}},decompose{{accumulator=input}},'
            f"distribute{{dim=N axes={','.join(self.axes)}}},insert-collectives,"
            f"place-collectives{{at={self.at}}},fuse{{strategy={self.strategy}}}"
        )

    def lowered(self) -> ModuleOp:
        """Return the COMET ops of the program with its factors."""
        return run_passes(
            tiled(run(self.source, self.passes), **self.factors), "lower-to-comet"
        )


def run(source: str, pipeline: str) -> ModuleOp:
    """Run a pipeline on a module given as text."""
    context = Context()
    for dialect in (Builtin, Func, Compound, Collective):
        context.load_dialect(dialect)
    module = Parser(context, source).parse_module()
    available = get_all_passes()
    specs = parse_pipeline(pipeline)
    passes = tuple(available[spec.name]().from_spec(spec) for spec in specs)
    PassPipeline(passes).apply(context, module)
    module.verify()
    return module


def _divisor(of: int) -> st.SearchStrategy[int]:
    return st.sampled_from([d for d in range(1, of + 1) if of % d == 0])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw sizes, and factors that divide them."""
    hardware, extent = draw(st.sampled_from([("edge", 2), ("cloud", 4)]))
    axes = draw(
        st.sampled_from([("cx", "cy", "kx", "ky"), ("cx", "cy"), ("cx",), ("kx", "ky")])
    )
    m = draw(st.sampled_from([1, 6, 16, 48, 96, 100, 130, 256]))
    k = draw(st.sampled_from([1, 3, 16, 32, 100, 128]))
    n = draw(st.sampled_from([1, 2, 3, 5, 8, 16, 30]))
    outer = draw(_divisor(m))
    shared = draw(_divisor(m // outer))
    inner = {
        "M": draw(_divisor(m // outer // shared)),
        "N": draw(_divisor(n)),
        "K": draw(_divisor(k)),
    }
    rows = [f"{d}={inner[d]}" for d in draw(st.permutations("MNK")) if inner[d] > 1]
    vector = draw(_divisor(n))
    entries = {
        "DRAM": f"M={outer}" if outer > 1 else "",
        "GB": f"M={shared}" if shared > 1 else "",
        "map": f"N={vector}" if vector > 1 else "",
        "contract": " ".join(rows),
    }
    return Case(
        operation=draw(st.sampled_from(sorted(OPERANDS))),
        hardware=hardware,
        sizes={"M": m, "N": n * extent ** len(axes), "K": k},
        axes=axes,
        at=draw(st.sampled_from(["GB", "OB"])),
        strategy=draw(st.sampled_from(["full", "partial", "none"])),
        factors={where: what for where, what in entries.items() if what},
    )


@settings(
    max_examples=8 if EVERY_CASE else 4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(cases())
def test_emitted_files_are_legal(case: Case) -> None:
    try:
        module = case.lowered()
    except PassFailedException as error:
        assume("bytes" not in str(error))  # tiles that do not fit are rightly rejected
        raise
    assert [str(violation) for violation in check(write_files(module))] == []


@one_of(6)
@pytest.mark.parametrize(
    ("operation", "hardware", "strategy", "at"),
    covering(
        product(OPERANDS, ("edge", "cloud"), ("full", "partial", "none"), ("GB", "OB"))
    ),
)
def test_every_strategy_gives_legal_files(
    operation: str, hardware: str, strategy: str, at: str
) -> None:
    case = Case(
        operation=operation,
        hardware=hardware,
        sizes={"M": 256, "N": 512, "K": 128},
        axes=("cx", "cy", "kx", "ky"),
        at=at,
        strategy=strategy,
        factors={"DRAM": "M=8", "GB": "M=2", "map": "N=2", "contract": "K=4 N=2"},
    )
    assert check(write_files(case.lowered())) == []


@pytest.mark.parametrize("name", POSITIONAL)
def test_positions_are_an_error(name: str) -> None:
    path = ROOT / "samples" / "hardware" / "edge.yaml"
    passes = f'attach-hardware{{path="{path}"}},comet-accelerator'
    text = (ROOT / "samples" / f"{name}.mlir").read_text()
    with pytest.raises(PassFailedException, match="do not compute the position"):
        run(text, passes)


def test_every_reduction_has_a_kind_in_the_files() -> None:
    assert set(REDUCES) == set(REDUCTIONS) == set(ReduceKind)


def rows(text: str) -> tuple[LoopAttr, ...]:
    """Read `M2 N3` as rows."""
    return tuple(LoopAttr(word[0], int(word[1:])) for word in text.split())


@pytest.mark.parametrize(
    ("paths", "order"),
    [
        (["M2 N3"], "KNM"),
        (["N3 M2"], "KMN"),
        (["M2 K4", "M3 N2"], "KNM"),
        (["K2 N4", "M2 N8"], "NKM"),
        (["M1 N2 K1"], "MKN"),
        (["M2 M4 N2"], "KNM"),
        ([], "MNK"),
    ],
)
def test_loops_share_one_order(paths: list[str], order: str) -> None:
    assert "".join(loop_order([rows(path) for path in paths], "MNK")) == order


def test_more_dimensions_than_letters_are_rejected() -> None:
    dims = [f"d{number}" for number in range(27)]
    assert len(set(names_for(dims[:26], (), ()).dims.values())) == 26
    with pytest.raises(PassFailedException, match="no letter is left for"):
        names_for(dims, (), ())


def records(file: str, family: str) -> ModuleOp:
    """Return a recorded set of files as a module."""
    for line in (DATA / file).read_text().splitlines():
        record = json.loads(line)
        if record["family"] == family:
            return read_files(record["files"])
    raise KeyError(family)


def test_a_mesh_that_the_tool_does_not_know_is_rejected() -> None:
    module = records("rejected.jsonl", "reject-mesh3x3")
    with pytest.raises(DiagnosticException, match="9 instances of GB lie on a mesh"):
        CometTarget().emit(Context(), module, StringIO())


def test_a_tile_that_the_array_confuses_is_rejected() -> None:
    files = write_files(records("accepted.jsonl", "gemm"))
    files["arch.yaml"] = files["arch.yaml"].replace("array_rows: 32", "array_rows: 1")
    module = read_files(files)
    leaf = next(op for op in module.walk() if isinstance(op, OperationOp))
    leaf.properties["primitive"] = SizesAttr((("M", 8), ("N", 64), ("K", 8)))
    leaf.properties["compute"] = ComputeAttr(Compute((("M", 8),)))
    with pytest.raises(PassFailedException, match="confuses equal extents"):
        check_legality(module)


def test_an_all_reduce_that_the_tool_takes_for_free_is_rejected() -> None:
    files = write_files(records("accepted.jsonl", "softmax-fused"))
    old, new = "broadcast_support: true", "reduction_support: true"
    files["arch.yaml"] = files["arch.yaml"].replace(old, new, 1)
    with pytest.raises(PassFailedException, match="network of GB reduces but does not"):
        check_legality(read_files(files))


@pytest.mark.parametrize(
    ("unit", "kinds"),
    [("SystolicArray", "SystolicArray or GEMM or MAC or intmac"), ("VSIMD", "VSIMD")],
)
def test_a_machine_without_a_unit_for_an_op_is_rejected(
    unit: str, kinds: str, tmp_path: Path
):
    file = tmp_path / "edge.yaml"
    file.write_text(EDGE.read_text().replace(unit, "Engine"))
    module = parse_module((ROOT / "samples/gemm_softmax.mlir").read_text())
    passes = 'decompose,fuse{strategy=full},tile{factors="p_dram: M=4"},lower-to-comet'
    with pytest.raises(
        PassFailedException, match=f"@edge has no compute tile called {kinds}, as "
    ):
        run_passes(module, f'attach-hardware{{path="{file}"}},{passes}')


def test_collectives_are_not_repeated_by_the_loops_of_a_neighbour():
    """The COMET tool could price the files only if the two loops were one node."""
    tree = fused("full loops=separate", sizes=(8, 8, 32))
    whole = run_passes(tree, 'tile{factors=""},lower-to-comet')
    assert sum(isinstance(op, CollectiveOp) for op in whole.walk()) == 2
    cut = run_passes(tree, 'tile{factors="c_gb: K=4"}')
    with pytest.raises(
        PassFailedException,
        match=r"price .* only together with .*, whose loops would repeat the collectiv",
    ):
        run_passes(cut, "lower-to-comet")


def test_an_op_on_numbers_names_a_dimension():
    """Its primitive has one element, and no price is another one for it."""
    text = """
      !X = tensor<8x16xf16, #compound.dims<M, N>>
      !s = tensor<f16, #compound.dims<>>
      func.func @main(%x: !X) -> !X {
        %r = compound.reduce add %x : !X -> !s
        %e = compound.map exp %r : !s -> !s
        %y = compound.map sub %x, %e : !X, !s -> !X
        func.return %y : !X
      }"""
    edge = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    module = run_passes(parse_module(text), f"{edge},comet-accelerator{{pad=none}}")
    (leaf,) = (
        op
        for op in module.walk()
        if isinstance(op, OperationOp) and str(op.kind.data) == "exp"
    )
    assert [size for _, size in leaf.primitive.data] == [1]
    files = write_files(module)
    assert check(files) == []
    assert estimate_module(read_files(files), "tool") == estimate_module(module, "tool")
