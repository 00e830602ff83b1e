"""Runs a case as users would, and judges what came of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from comet_rules import check
from fuzz_case import FOLDER, ROOT, Case, Verdict
from fuzz_compiling import fault
from fuzz_meaning import (
    ROUNDINGS,
    Hang,
    Meaning,
    OtherMeaning,
    compiled,
    limited,
    meaning_of,
    sensitivity,
)
from fuzz_refusal import unclear
from semantics import comet_context, parse_module
from tool_run import ToolRun, comet_cost_command, comet_opt_command
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import InterpretationError

from comet.codegen.comet import write_files
from comet.codegen.comet.chain import chain_of
from comet.codegen.triton import TritonTarget
from comet.dialects.collective import MeshOp
from comet.interpreter.tensor import Array
from comet.passes.sharding.add_ctas import AXIS as CTAS

LONGEST = 800
"""Characters of an error."""
LIMITS = {
    "elementary": 60.0,
    "shared": 60.0,
    "named": 60.0,
    "options": 60.0,
    "several": 60.0,
    "sync": 40.0,
}
"""Seconds of processor time that a case may take; others less."""
LIMIT = 15.0
RUN = ("elementary", "shared", "named", "options", "sync")
"""Families whose programs come with a reference, so that they can be run."""
MEANT = ("mlir", "elementary", "shared", "named", "options", "several")
"""Families whose programs are interpreted before and after each pass."""
RIGHT = ("elementary", "shared", "named", "options", "several")
"""Families of programs without mistakes, so that a refusal is about what passes do."""
SLOW = 8.0
"""Seconds of processor time of a run that is not repeated with another seed."""
EMITTED = "emitted.py"

EPOCHS = 3
"""Launches of a program, so that a slot is used twice."""


def judge(case: Case) -> Verdict:
    """Run a case in a folder of its own."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        case.write(folder)
        try:
            with limited(LIMITS.get(case.family, LIMIT)):
                return _judged(case, folder)
        except Hang as hang:
            return Verdict("hang", str(hang))


def _judged(case: Case, folder: Path) -> Verdict:
    if not case.input:
        return spoken(comet_cost_command(case.arguments(folder)), folder)
    done = comet_opt_command(case.arguments(folder))
    verdict = spoken(done, folder)
    if verdict.kind == "refused" and case.family in RIGHT:
        lacking = unclear(verdict.message, case.passes)
        return (
            Verdict("message", f"{lacking}: {verdict.message}") if lacking else verdict
        )
    if verdict.kind != "accepted":
        return verdict
    if case.target == "mlir" and (trip := _read_again(done.out, folder)) is not None:
        return trip
    if case.family in (*MEANT, *RUN):
        return _meaning(case, folder) or verdict
    return verdict


def spoken(done: ToolRun, folder: Path) -> Verdict:
    """Judge what a tool printed: an error is one sentence, and so is a warning."""
    error = done.err.replace(f"{folder}/", "").replace(f"{ROOT}/", "")
    if done.code == 0:
        right = all(
            ": warning: " in line
            and len(line) <= LONGEST
            and not re.search(DUMPED, line)
            for line in error.splitlines()
        )
        return Verdict("accepted") if right else Verdict("message", error)
    if "a bug in comet" in error or "Traceback" in error:
        return Verdict("bug", error)
    if "made IR that does not verify" in error:
        return Verdict("invalid IR", error)
    lines = error.splitlines()
    is_sentence = len(lines) == 1 and "error: " in error and done.code == 1
    if not is_sentence or len(error) > LONGEST or re.search(DUMPED, error):
        return Verdict("message", error)
    return Verdict("refused", error.strip())


DUMPED = r"builtin\.module(\"\(| \{)|func\.func @|\{'\w|<comet\.|<xdsl\.|object at 0x"
"""What is in no sentence."""


def _read_again(text: str, folder: Path) -> Verdict | None:
    """Judge whether what was printed is read, and printed alike."""
    (folder / "again.mlir").write_text(text, errors="surrogatepass")
    again = comet_opt_command([str(folder / "again.mlir")])
    if again.code != 0:
        return Verdict("round trip", again.err.replace(f"{folder}/", ""))
    return None if again.out == text else Verdict("round trip", "printed another way")


def _meaning(case: Case, folder: Path) -> Verdict | None:
    """Judge what a program computes after each pass, and when it is run."""
    module = parse_module(case.text)
    try:
        expected = (
            meaning_of(module) if case.family in MEANT else Meaning(module, {}, {})
        )
    except InterpretationError:
        expected = Meaning(module, {}, {})
    except Exception as error:
        return Verdict(
            "wrong", f"the interpreter fails with {type(error).__name__}: {error}"
        )
    try:
        reached = compiled(module, case.passes.replace(FOLDER, str(folder)), expected)
    except OtherMeaning as error:
        return Verdict("wrong", str(error))
    if case.family not in RUN:
        return None
    if case.target == "comet":
        chain = chain_of(reached)
        modules = [reached] if chain is None else chain.folders.values()
        for module in modules:
            if broken := check(write_files(module)):
                return Verdict("illegal file", str(broken[0]))
    if case.target != "triton":
        return None
    return _run(reached, folder) or _compiled(case, folder / EMITTED)


def _run(module: ModuleOp, folder: Path) -> Verdict | None:
    """Run an emitted module on its ranks, against its reference."""
    from comet.runtime.check import random_inputs, reference_arguments
    from comet.runtime.child import report
    from comet.runtime.program import Program, load_module, program_of
    from comet.runtime.request import Request

    output, path = StringIO(), folder / EMITTED
    TritonTarget().emit(comet_context(), module, output)
    path.write_text(output.getvalue())
    program = program_of(load_module(str(path)), str(path))
    alone = isinstance(program, Program)
    start = process_time()
    for seed in (0,) if alone else (0, 1):
        if process_time() - start > SLOW:
            break
        backend = "interpreter" if alone else "scheduler"
        resident = (None, _group_size(module))[seed % 2]
        try:
            facts = report(
                Request(str(path), backend, seed, resident=resident, epochs=EPOCHS)
            )
        except Exception as error:
            return Verdict(
                "wrong", f"when run: {type(error).__name__}: {error}"[:LONGEST]
            )
        if "failure" in facts:
            return Verdict("wrong", f"when run: {facts['failure']}"[:LONGEST])
        seeds = [seed] if alone else [(seed, epoch) for epoch in range(EPOCHS)]
        drawn = (random_inputs(program, each, "cpu") for each in seeds)
        inputs = [reference_arguments(program, tensors) for tensors in drawn]
        error = facts["max_error"]
        if not facts["ok"] and not _is_rounding(module, inputs, error):
            return Verdict("wrong", f"when run: error {error}")
    return None


def _compiled(case: Case, path: Path) -> Verdict | None:
    """Compile the kernels of a module for their GPU, or have them read by Triton."""
    target = "gfx942" if "mi300x8" in case.passes else "sm_90"
    reason = fault(path, target, case.compiles)
    may_spill = "spilled" in reason and "factors=" in case.passes
    if not reason or may_spill:
        return None
    return Verdict("wrong", f"when compiled for {target}: {reason}"[:LONGEST])


def _group_size(module: ModuleOp) -> int:
    """Return how many programs of a rank have to run at the same time."""
    meshes = (op for op in module.ops if isinstance(op, MeshOp))
    return max((mesh.axis_extents.get(CTAS, 1) for mesh in meshes), default=1)


def _is_rounding(
    module: ModuleOp, inputs: Sequence[Sequence[Array]], error: object
) -> bool:
    """Whether roundings of a program explain an error, or it has no finite value."""
    (name,) = (
        op.sym_name.data
        for op in module.ops
        if isinstance(op, func.FuncOp) and "comet.reference" in op.attributes
    )
    allowed = sensitivity(module, name, inputs)
    if isinstance(error, float):
        return error <= ROUNDINGS * allowed
    return math.isinf(allowed)
