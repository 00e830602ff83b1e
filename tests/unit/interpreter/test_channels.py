"""The reference interpreter on channels: readers see what a collective would give."""

import re
from pathlib import Path

import numpy as np
import pytest
from covering import one_of
from paths import ROOT
from rank_runs import outcomes
from semantics import assert_close, parse_module, random_inputs, run_passes
from triton_modules import to_triton

from comet.interpreter import run
from comet.interpreter.tensor import Array

PROGRAM = """
!X = tensor<{x}xf64, #compound.dims<M, K @HBM>>
!L = tensor<{sent}xf64, #compound.dims<M, K @HBM>>
!G = tensor<{received}xf64, #compound.dims<{dims} @HBM>>
!CH = !dataflow.channel<{mode} gather {gather}{split} : !L -> !G>
!ALL = tensor<{all}xf64, #compound.dims<{dims} @HBM>>
collective.mesh @gpus {{rank = {ranks}}}
func.func @f(%x: !X) -> !ALL {{
  %all = collective.spmd on @gpus ins(%x : !X) sharded [{{{held}}}]
      outs(!ALL) sharded [{{{left}}}] {{
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {{
    ^bb0(%l1: !L):
      %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
      dataflow.kernel @give ins(%l1, %ch : !L, !CH) {{
      ^bb0(%l2: !L, %ch1: !CH):
        dataflow.{give} %l2 to %ch1 : !L, !CH
        dataflow.signal %ch1 : !CH
        dataflow.yield
      }}
      %buffer = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%ch : !CH) outs(%buffer : !G) {{
      ^bb0(%ch1: !CH):
        dataflow.wait %ch1 : !CH
        %g = dataflow.{take} %ch1 : !CH -> !G
        dataflow.yield %g : !G
      }} -> !G
      dataflow.yield %y : !G
    }} -> !G
    collective.yield %r : !G
  }}
  return %all : !ALL
}}
"""
MODES = {"push": ("push", "read"), "pull": ("stage", "pull")}


def exchange(mode: str, ranks: int, x: Array, *, split: bool) -> Array:
    """Send shares of K from rank to rank, all of them or those of the own M."""
    rows, columns = x.shape
    share, part = -(-columns // ranks), -(-rows // ranks)
    give, take = MODES[mode]
    text = PROGRAM.format(
        mode=mode,
        give=give,
        take=take,
        ranks=ranks,
        gather="K",
        split=" split M" if split else "",
        x=f"{rows}x{columns}",
        all=f"{rows}x{columns}",
        sent=f"{rows}x{share}",
        received=f"{part if split else rows}x{columns}",
        dims="M, K",
        held='K = ["rank"]',
        left='M = ["rank"]' if split else "",
    )
    (result,) = run(parse_module(text), "f", [x])
    return result


@one_of(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("split", [False, True])
def test_a_channel_gives_what_its_collective_would(mode: str, ranks: int, split: bool):
    x = np.random.default_rng(ranks).standard_normal((7, 10))
    assert_close([exchange(mode, ranks, x, split=split)], [x])


TERMS = """
!X = tensor<2x7xf64, #compound.dims<M, K @HBM>>
!L = tensor<2x3xf64, #compound.dims<M, K @HBM>>
!T = tensor<2xf64, #compound.dims<M @HBM>>
!G = tensor<3x2xf64, #compound.dims<R, M @HBM>>
!CH = !dataflow.channel<push gather R : !T -> !G>
collective.mesh @gpus {rank = 3}
func.func @f(%x: !X) -> !G {
  %all = collective.spmd on @gpus ins(%x : !X) sharded [{K = ["rank"]}]
      outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%l1: !L):
      %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
      dataflow.kernel @give ins(%l1, %ch : !L, !CH) {
      ^bb0(%l2: !L, %ch1: !CH):
        %t = compound.reduce add %l2 : !L -> !T
        dataflow.push %t to %ch1 : !T, !CH
        dataflow.yield
      }
      %buffer = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%ch : !CH) outs(%buffer : !G) {
      ^bb0(%ch1: !CH):
        %g = dataflow.read %ch1 : !CH -> !G
        dataflow.yield %g : !G
      } -> !G
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  return %all : !G
}
"""


def test_terms_lie_side_by_side_along_a_new_dimension():
    x = np.random.default_rng(1).standard_normal((2, 7))
    shares = [x[:, :3], x[:, 3:6], x[:, 6:]]
    expected = np.stack([share.sum(axis=1) for share in shares])
    assert_close(run(parse_module(TERMS), "f", [x]), [expected])


def test_what_nobody_has_pushed_is_undefined():
    lines = [line for line in TERMS.splitlines() if "dataflow.push" not in line]
    module = parse_module("\n".join(lines), verify=False)
    (result,) = run(module, "f", [np.ones((2, 7))])
    assert np.all(np.isnan(result))


DOCUMENTED = next(
    example
    for example in re.findall(
        r"```mlir\n(.*?)```",
        (ROOT / "docs/ir.md").read_text(),
        re.S,
    )
    if "dataflow.channel" in example
)
REFERENCE = """
func.func private @main__reference(%a: tensor<8x64xf32, #compound.dims<M, K>>)
    -> tensor<8xf32, #compound.dims<M>> attributes {comet.reference} {
  %s = compound.reduce add %a : tensor<8x64xf32, #compound.dims<M, K>>
    -> tensor<8xf32, #compound.dims<M>>
  func.return %s : tensor<8xf32, #compound.dims<M>>
}
"""


def test_the_documented_example_is_verified_and_runs(tmp_path: Path):
    module = run_passes(parse_module(DOCUMENTED + REFERENCE), "verify-sync")
    (a,) = random_inputs(module, "main")
    assert_close(run(module, "main", [a]), [a.sum(axis=1)])
    found = outcomes({"documented": to_triton(module)}, tmp_path, seeds=1)
    assert found == {"documented": "right"}
