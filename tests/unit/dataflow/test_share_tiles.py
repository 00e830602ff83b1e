"""Programs that share lists of tiles: meaning, results, choice, what is rejected."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from covering import EVERY_CASE, one_of, some
from gather_programs import paged
from interpreting import write_modules
from rank_runs import outcomes
from semantics import assert_close, parse_module, random_inputs, run_passes
from split_programs import H200, MI300X
from torch_python import run_python
from triton_modules import emitted
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from comet.interpreter import run
from comet.passes.dataflow.share_tiles import SHARES

POSITIONS = 54
DECODE = f"""
!Q = tensor<4x2x3x8xf16>
!K = tensor<4x2x{POSITIONS}x8xf16>
!V = tensor<4x2x{POSITIONS}x16xf16>
!L = tensor<4xi32>
!O = tensor<4x2x3x16xf16>
func.func @f(%q: !Q, %k: !K, %v: !V, %lens: !L) -> !O {{
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !V, !L) -> !O
  func.return %o : !O
}}
"""
LENGTHS = {
    "none": (0, 0, 0, 0),
    "one": (1, 1, 1, 1),
    "full": (54, 54, 54, 54),
    "the last": (0, 1, 0, 54),
    "several": (54, 1, 19, 33),
}
CASES = {
    "several runs in a sequence": (6, 16, 1),
    "several sequences in a run": (3, 4, 2),
    "a run for each sequence": (2, 8, 3),
    "all in one run": (6, 2, 1),
}
"""The most parts of a sequence, the programs, and the tiles of an equal part."""
COPIES = "materialize-copies,hoist-copies,verify-sync"
BLOCKS = f"{COPIES},bound-loops,pad-blocks,map-grid,mask-copies"


def tiles(case: str) -> str:
    """Return the factors of a case."""
    parts, _, factor = CASES[case]
    return (
        f"m: S_part={parts} B=4 H=2 G=1; m_s_in: S_in={factor}; products_d: D=1; "
        "o: B=4 H=2 G=1 E=1; m_s_parts: S_parts=1"
    )


@cache
def elementary() -> ModuleOp:
    """Return the function on named dimensions."""
    before = f"{H200},decompose{{accumulator=f32}},use-ge,stream"
    return run_passes(parse_module(DECODE), before)


@cache
def shared(case: str, then: str = "") -> ModuleOp:
    """Return the function after `share-tiles`, and more passes."""
    parts, programs, _ = CASES[case]
    passes = (
        f'split{{dim=S parts={parts}}},fuse{{strategy=full}},tile{{factors="'
        f'{tiles(case)}"}},outline-kernels,merge-partials{{merge=last}},'
        f'share-tiles{{kernels="f_m_kernel={programs}"}},verify-sync'
    )
    return run_passes(elementary(), f"{passes},{then}" if then else passes)


@one_of(3)
@pytest.mark.parametrize("then", ["", COPIES, BLOCKS])
@pytest.mark.parametrize("case", [case for case, _ in some(CASES.items(), 2)])
def test_sharing_means_the_same(case: str, then: str):
    *others, _ = random_inputs(elementary(), "f")
    for lengths in LENGTHS.values():
        inputs = [*others, np.array(lengths, dtype=np.float64)]
        found = run(shared(case, then), "f", inputs)
        assert_close(found, run(elementary(), "f", inputs))


RIGHT = """
import json, sys, numpy, torch
from comet.runtime.program import load_module, program_of
from comet.runtime.check import random_inputs
module = load_module(sys.argv[1])
q, k, v, _ = random_inputs(program_of(module, sys.argv[1]), 0, "cpu")
errors = []
for lengths in json.loads(sys.argv[2]):
    lens = torch.tensor(lengths, dtype=torch.int32)
    found = module.f(q, k, v, lens).double().numpy()
    right = module.f__reference(*(x.double().numpy() for x in (q, k, v)), lens.numpy())
    errors.append(float(numpy.abs(found - right).max() / numpy.abs(right).max()))
print(json.dumps(errors))
"""


def source(case: str, options: str = "") -> str:
    """Return the emitted module of a case."""
    parts, programs, _ = CASES[case]
    passes = (
        f'triton-distributed{{strategy=full split="S={parts}" merge=last '
        f'share="f_m_kernel={programs}" factors="{tiles(case)}" {options}}}'
    )
    return emitted(DECODE, f"{H200},{passes}")


@pytest.mark.parametrize("case", [case for case, _ in some(CASES.items(), 4)])
def test_emitted_programs_are_right_for_all_lengths(case: str, tmp_path: Path):
    """Several launches share buffers and counters: none is left from the one before."""
    (path,) = write_modules({"shared": source(case)}, tmp_path)
    lengths = json.dumps(list(LENGTHS.values()))
    done = run_python(["-c", RIGHT, path, lengths], {"TRITON_INTERPRET": "1"})
    assert done.returncode == 0, done.stderr
    assert max(json.loads(done.stdout)) < 2e-3


ARRIVE = "arrive_last(m_counters_ptr + (b * 2 + h), parts)"
MUTATIONS = {
    "all but one arrive": (ARRIVE, ARRIVE.replace("parts)", "parts - 1)")),
    "one more arrives": (ARRIVE, ARRIVE.replace("parts)", "parts + 1)")),
    "as many as there may be": (ARRIVE, ARRIVE.replace("parts)", "6)")),
    "all parts are merged": ("in range(parts)", "in range(6)"),
    "runs that overlap": ("stop_tile - before", "stop_tile - before + 1"),
    "the first part of another": ("s_part = run - first_run", "s_part = run * 0"),
}
"""Edits of emitted programs, none of which may be right."""
TRIED = dict(some(MUTATIONS.items(), 3))


def test_programs_are_right_in_any_order_and_not_if_changed(tmp_path: Path):
    right = source("several runs in a sequence")
    sources = {"right": right}
    for name, (old, new) in TRIED.items():
        assert old in right, name
        sources[name] = right.replace(old, new)
    numbered = {f"module_{i}": text for i, text in enumerate(sources.values())}
    became = outcomes(numbered, tmp_path, seeds=3 if EVERY_CASE else 2)
    found = dict(zip(sources, became.values(), strict=True))
    assert found.pop("right") == "right"
    assert {*found.values()} <= {"RaceError", "wrong result"}


EDITS = [
    (" count %count : tensor<4xi32, #compound.dims<B @HBM>>", "", "counts other parts"),
    ("first 5 end 6", "end 6", "do not fold from their first tile to their end"),
    ("first 5 end 6", "first 5 end 5", "do not fold from their first tile"),
    (" end 3 ins", " ins", "reads parts that nobody stored"),
    ("persistent = 16", "persistent = 14", "write persistent = 16"),
    ("runs 8", "runs 7", "has 7 runs for each of 2 lists, and launches 16 programs"),
    ("arrivals 6", "arrivals 5", "and 5 are said to; write arrivals 6"),
    (" fence", "", "without a fence"),
    ("acq_rel gpu", "release gpu", "is release: the last program may load"),
]


@one_of(2)
@pytest.mark.parametrize(("old", "new", "reason"), EDITS)
def test_what_could_lose_tiles_is_rejected(old: str, new: str, reason: str):
    text = str(shared("several runs in a sequence"))
    assert old in text
    module = parse_module(text.replace(old, new))
    with pytest.raises(PassFailedException, match=reason):
        run_passes(module, "verify-sync")


LONG = """
!Q = tensor<16x8x8x128xf16>
!K = tensor<16x8x32768x128xf16>
!L = tensor<16xi32>
func.func @f(%q: !Q, %k: !K, %v: !K, %lens: !L) -> !Q {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !K, !L) -> !Q
  func.return %o : !Q
}
"""


@cache
def chosen(
    lengths: str, options: str = "", keys: int = 64, machine: str = H200
) -> str | None:
    """Return what `share-tiles` has chosen for long sequences, in tiles of `keys`."""
    text = str(shared_long(lengths, options, keys, machine))
    return found[1] if (found := re.search(rf'{SHARES} = "(.*?)"', text)) else None


@cache
def shared_long(
    lengths: str, options: str, keys: int = 64, machine: str = H200
) -> ModuleOp:
    """Return a launch plan of long sequences whose programs may share tiles."""
    hardware = machine.replace("}", f" {lengths}}}")
    tiles = f"m: S_part=8 B=16 H=8 G=1 warps=4 stages=2; m_s_in: S_in={4096 // keys}"
    passes = (
        f'triton-distributed{{strategy=full split="S=8" factors="{tiles}; '
        'products_d: D=1; o: B=16 H=8 G=1 E=1; m_s_parts: S_parts=8" '
        f"merge=last to=dataflow {options}}}"
    )
    return run_passes(parse_module(LONG), f"{hardware},{passes}")


def test_a_list_is_taken_where_lengths_differ():
    assert chosen("") is None
    assert chosen("", "share=all") == chosen("lengths=0.5") == "f_m_kernel=656"
    assert chosen("lengths=0.5", "share=none") is None
    assert chosen("lengths=0.5", "merge=launch") is None


@pytest.mark.parametrize(
    ("keys", "programs", "registers"), [(64, 656, 96), (32, 656, 96), (64, 792, 0)]
)
def test_threads_have_the_registers_with_which_all_programs_run_at_a_time(
    keys: int, programs: int, registers: int
):
    """
    Five programs of 128 threads have 102 registers for each thread, a multiple of 8.

    Six have 85, fewer than the 96 that the model expects for tiles of 64 keys.
    """
    share = f'share="f_m_kernel={programs}"'
    text = str(shared_long("", share, keys))
    given = f", registers = {registers}" * (registers > 0)
    assert f"group = 1, persistent = {programs}{given}>" in text
    if registers:
        assert chosen("", "share=all", keys) == f"f_m_kernel={programs}"


def test_launches_give_registers_where_the_machine_says_so():
    text = str(shared_long("", "share=all", machine=MI300X))
    assert re.search("group = 1, persistent = [0-9]+>", text)


def test_keys_in_pages_are_no_list():
    """Pages are gathered in parts: there is no view of all keys of a sequence."""
    text = paged(4, 2, 3, 8, 8, 6, 17).replace("-1.0e+30", "-3.0e+38")
    tiles = "top: S_part=4 B=4 H=2 G=1; top_s_in: S_in=2; o: B=4 H=2 G=1 D=1"
    passes = (
        f'{H200},triton-distributed{{strategy=full split="S=4" merge=last to=dataflow '
        f'factors="{tiles}; top_s_parts: S_parts=1" share=%s}}'
    )
    with pytest.raises(PassFailedException, match="%k is no part of whole sequences"):
        run_passes(parse_module(text), passes % '"main_top_kernel=16"')
    assert "dataflow.shares" not in str(run_passes(parse_module(text), passes % "all"))
