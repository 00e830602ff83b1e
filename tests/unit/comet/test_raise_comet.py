"""`raise-comet`: recorded mappings become programs, or say why they are none."""

import json
import re

import numpy as np
import pytest
from covering import exhaustive, one_of
from paths import DATA
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.api.program import installed_context, parsed
from comet.codegen.comet.reader import read_files
from comet.dialects.comet import MappingOp, ProblemOp
from comet.dialects.compound.dims import extents_of
from comet.interpreter import run
from comet.passes.comet.raise_comet import FUNCTION, raise_mapping
from comet.passes.comet.raise_comet.raised_block import NotRaisable
from comet.tools.diagnostics import location_of_op, sentence

FILE = DATA / "comet" / "accepted.jsonl"
RECORDS = [json.loads(line) for line in FILE.read_text().splitlines()]


def raised(files: dict[str, str]) -> ModuleOp:
    ops = list(read_files(files).ops)
    problem = next(op for op in ops if isinstance(op, ProblemOp))
    mapping = next(op for op in ops if isinstance(op, MappingOp))
    return ModuleOp(raise_mapping(problem, mapping))


def assert_means_its_reference(module: ModuleOp, name: str = FUNCTION) -> None:
    func = next(
        op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name
    )
    random = np.random.default_rng(0)
    inputs = [
        0.3 * random.standard_normal(tuple(extents_of(arg).values()))
        for arg in func.args
    ]
    found = run(module, name, inputs)
    expected = run(module, f"{name}__reference", inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@one_of(6)
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['family']}-{r['id']}")
def test_a_record_is_a_program_or_says_why_not(record: dict[str, dict[str, str]]):
    if _is_program(record["files"]):
        assert_means_its_reference(raised(record["files"]))
        return
    with pytest.raises(NotRaisable, match=r"^raise-comet: the mapping"):
        raised(record["files"])


def test_some_records_are_programs_and_some_are_not():
    kinds = {str(record["family"]): _is_program(record["files"]) for record in RECORDS}
    assert kinds["gemm"]
    assert set(kinds.values()) == {True, False}


def _is_program(files: dict[str, str]) -> bool:
    try:
        raised(files)
    except NotRaisable:
        return False
    return True


SOFTMAX = """
func.func @f(%a: tensor<24x12xf16>, %b: tensor<12x64xf16>) -> tensor<24x64xf16> {
  %p = compound.gemm_softmax %a, %b
    : (tensor<24x12xf16>, tensor<12x64xf16>) -> tensor<24x64xf16>
  func.return %p : tensor<24x64xf16>
}
"""


@one_of(2)
@pytest.mark.parametrize(
    "strategy", ["none", "isolate_contractions", "partial", "full"]
)
def test_what_comet_emits_can_be_raised(strategy: str):
    hardware = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    options = f"strategy={strategy} stream=false dim=N pad=none"
    passes = f"{hardware},comet-accelerator{{{options}}},raise-comet"
    module = run_passes(parse_module(SOFTMAX), passes)
    module.verify()
    assert_means_its_reference(module)


def files_of(module: ModuleOp) -> str:
    """Return the problem and the mapping of a module, without notes and prices."""
    files = [op for op in module.ops if isinstance(op, ProblemOp | MappingOp)]
    for op in (op for file in files for op in file.walk()):
        for name in [name for name in op.attributes if name.startswith("comet.")]:
            del op.attributes[name]
    return "\n".join(map(str, files))


@one_of(18)
@pytest.mark.parametrize("strategy", ["none", "partial", "full"])
@pytest.mark.parametrize(
    "options",
    [
        "dim=M",
        "dim=N",
        "dim=K",
        "dim=N at=OB",
        "dim=N kind=allreduce",
        'dim="N:cx"',
        'dim="M:cx,kx;N:cy,ky"',
        'dim="M:cx;N:cy" kind=allreduce',
    ],
)
def test_what_is_raised_lowers_to_the_same_mapping(strategy: str, options: str):
    hardware = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    pipeline = (
        f"comet-accelerator{{strategy={strategy} stream=false pad=none {options}}}"
    )
    module = run_passes(parse_module(SOFTMAX), f"{hardware},{pipeline}")
    again = run_passes(module.clone(), "raise-comet,lower-to-comet")
    assert files_of(again) == files_of(module)


def test_floats_of_8_bits_keep_their_width():
    record = next(record for record in RECORDS if record["family"] == "gemm")
    module = run_passes(read_files(record["files"]), "raise-comet")
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    assert "xf8E4M3FN" in str(func.function_type)
    assert "8 bits" in (text := str(run_passes(module, "lower-to-comet")))
    assert "16 bits" not in text


ATTENTION = """
func.func @f(%q: Q, %k: K, %v: K) -> Q {
  %o = compound.attention %q, %k, %v : (Q, K, K) -> Q
  func.return %o : Q
}
""".replace("Q", "tensor<1x1x8x16xf16>").replace("K", "tensor<1x1x16x16xf16>")


def test_a_product_with_a_constant_is_no_square():
    hardware = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    options = 'strategy=full stream=false dim="" pad=none'
    passes = f"{hardware},comet-accelerator{{{options}}},raise-comet"
    with pytest.raises(NotRaisable, match="MULT of type mult has 1 operand"):
        run_passes(parse_module(ATTENTION), passes)


def test_a_product_of_one_tensor_called_sq_is_its_square():
    files = next(r["files"] for r in RECORDS if r["family"] == "layernorm-fused")
    assert re.search(
        "compound.map mult (%[a-z0-9_]+), \\1 :", str(raised(files)).lower()
    )


COLLECTIVE = """
      comet.collective allreduce "c1" at "GB" in "A" out "A" dimension "N"
        src ["GB"] dest ["GB"] precision 16 reduction add
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('src ["GB"]', 'src ["OB"]'),
         "collective c1 joins instances of OB, to which no spatial node spreads"),
        (("reduction add", "reduction add spatial_factor 3"),
         "collective c1 joins 3 instances, and the nodes spread N over 2"),
    ],
)  # fmt: skip
def test_a_collective_of_instances_that_are_not_there(
    change: tuple[str, str], reason: str
):
    text = MAPPING.replace(
        "    comet.tile spatial",
        COLLECTIVE.replace(*change) + "    comet.tile spatial",
        1,
    )
    with pytest.raises(NotRaisable, match=reason):
        run_passes(parse_module(text, verify=False), "raise-comet")


@exhaustive
def test_a_streamed_mapping_cannot_be_raised():
    """The files do not say what the iter_args of its fold begin with."""
    hardware = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    options = "strategy=none stream=true dim=M pad=none"
    passes = f"{hardware},comet-accelerator{{{options}}},raise-comet"
    with pytest.raises(PassFailedException, match="before any operation makes it"):
        run_passes(parse_module(SOFTMAX), passes)


def test_a_mapping_without_its_problem_is_an_error():
    with pytest.raises(PassFailedException, match=r"has 0 ops 'comet\.problem'"):
        run_passes(parse_module(SOFTMAX), "raise-comet")


MAPPING = """
comet.problem ins ["A", "B"] outs ["C"] instance <M = 4, N = 8, K = 2> {
  comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"]
    tensors <A[M, K], B[K, N], C[M, N] read_write>
}
comet.constants {}
comet.mapping {
  comet.tile temporal permutation "MNK" <
    A by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1],
    B by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1],
    C by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1]
  > {
    comet.tile spatial permutation "MNK" <
      A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1],
      B by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1],
      C by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1]
    > {
      comet.tile temporal permutation "MNK" <
        A by GEMM, GB -> E, 16 bits, [M = 1, N = 4, K = 2],
        B by GEMM, GB -> E, 16 bits, [M = 1, N = 4, K = 2],
        C by GEMM, GB -> E, 16 bits, [M = 1, N = 4, K = 2]
      > {
        comet.operation gemm "GEMM" primitive <M = 2, N = 1, K = 1> steps <
          A[M = 2, N = 1, K = 1],
          B[M = 2, N = 1, K = 1],
          C[M = 2, N = 1, K = 1]
        >
      }
    }
  }
}
"""


def test_a_small_mapping():
    module = run_passes(parse_module(MAPPING), "raise-comet")
    module.verify()
    assert_means_its_reference(module)


def test_elements_have_the_widest_precision():
    wide = MAPPING.replace("16 bits", "64 bits")
    module = run_passes(parse_module(wide), "raise-comet")
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    assert "xf64" in str(func.function_type)


def test_what_is_raised_and_what_is_not_is_named_by_the_mapping():
    mapping = MAPPING.replace("\ncomet.mapping", "\n\ncomet.mapping")
    module = run_passes(parsed(mapping, "in.mlir", installed_context()), "raise-comet")
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    assert location_of_op(func) == "in.mlir:8:1"
    other = mapping.replace("operation gemm", "operation softmax")
    module = parsed(other, "in.mlir", installed_context())
    with pytest.raises(NotRaisable) as error:
        run_passes(module, "raise-comet")
    assert str(sentence(error.value)).startswith("in.mlir:8:1: error: raise-comet")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("      A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1],\n"
          "      B by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1]",
          "      A by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 2, K = 1],\n"
          "      B by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 2, K = 1]"),
         "cuts M differently for A and C"),
        (("    B by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1],\n", ""),
         "moves tensor B, which the node above it does not have"),
        (("operation gemm", "operation softmax"), "has no elementary form"),
        (("operation gemm", "operation exp"), "has 2 operand"),
        (("A[M, K]", "A[M + N, K]"), "indexed by a sum of dimensions"),
        (("ins [\"A\", \"B\"] outs", "ins [\"A\"] outs"), "before any operation makes"),
        (("outs [\"C\"]", "outs [\"D\"]"), "the problem uses tensor D before"),
        (('operation gemm "GEMM"', 'operation gemm "SUM"'), "has no operation SUM"),
    ],
)  # fmt: skip
def test_what_is_no_program(change: tuple[str, str], reason: str):
    assert change[0] in MAPPING
    module = parse_module(MAPPING.replace(*change), verify=False)
    with pytest.raises(NotRaisable, match=re.escape(reason)):
        run_passes(module, "raise-comet")
