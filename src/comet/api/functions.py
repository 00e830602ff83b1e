"""The functions of `comet`; see docs/python.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

import yaml
from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.compiled import Compiled
from comet.api.exploring import Notify, ignored
from comet.api.notebook import NotebookProgress, in_notebook
from comet.api.plugins import load_plugin, plugin_at
from comet.api.pricing import Price, in_turn, priced
from comet.api.program import (
    Program,
    installed_context,
    mappings_in,
    module_of,
    source_of,
)
from comet.api.question import NOTHING, Question, Sampler, Sampling
from comet.api.saved import saved_constraints
from comet.api.source import PathOrText, Source
from comet.api.verifying import verified
from comet.batch.answering import Count, Result, results
from comet.batch.engines import Engine
from comet.batch.store import Store, recalled
from comet.cost.estimate import ModelName
from comet.dialects.arch import find_system
from comet.garbage import seldom_collected
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.pipeline import run_settled, spelled
from comet.passes.search import Objective
from comet.tools.checks import verify_module
from comet.tools.diagnostics import UsageError, errors_as_sentences
from comet.tools.option_check import named_passes
from comet.universe import installed

FilePath = str | PathLike[str]


def parse(program: PathOrText) -> ModuleOp:
    """
    Read a program, and verify it.

    A string with a line break is MLIR; any other is the path of an MLIR file, or of a
    folder with four COMET files (`arch.yaml`, `problem.yaml`, `mapping.yaml`,
    `constants.yaml`), which become a module of the level `comet`. Raises CometError,
    with file and line, if it is not valid.
    """
    with errors_as_sentences():
        return module_of(program, installed_context())


def load_dialects(plugin: FilePath) -> None:
    """
    Make the dialects that a Python file defines known to all that is read later.

    The file is one for `comet-opt --load-dialect-plugin`, such as one with a named op;
    dialects of installed packages are known without. Raises CometError if it fails, or
    if there is already a dialect of that name.
    """
    with errors_as_sentences():
        load_plugin(plugin_at(fspath(plugin)))


def compile(
    program: Program, hardware: FilePath | None = None, pipeline: str | None = None
) -> Compiled:
    """
    Run passes on a copy of a program.

    `program` is a module, or what `parse` takes. `hardware` is the hardware file, which
    is attached first; leave it out if the program has its machine. `pipeline` is a text
    as for `comet-opt -p`; by default `comet-accelerator`, which ends at the level
    `comet`, or `triton-distributed` on GPUs, which ends at the level `tl`. Raises
    CometError if an input is wrong, or a pass rejects the program.
    """
    with errors_as_sentences(), seldom_collected():
        context = installed_context()
        module = module_of(program, context)
        path = "" if hardware is None else fspath(hardware)
        attach = () if hardware is None else (AttachHardwarePass(path),)
        done = run_settled(attach, context, module)
        text = _default_pipeline(module) if pipeline is None else pipeline
        passes = named_passes(text, installed().all_passes)
        done += run_settled(passes, context, module)
        verify_module(module)
        return Compiled(module, spelled(done), path, context)


def _default_pipeline(module: ModuleOp) -> str:
    if (system := find_system(module)) is None:
        raise UsageError("the program has no machine; give hardware=, or a pipeline=")
    return "comet-accelerator" if system.gpu is None else "triton-distributed"


def cost(
    program: Program, model: ModelName = "paper", *, network_energy: bool = True
) -> Price:
    """
    Price a compiled program.

    `program` is a module of the level `comet`, a folder with COMET files, or with those
    of a chain of mappings, or a program that was compiled for GPUs; or a path or text
    of one. `model` is `paper`, `ideal`
    (perfect overlap) or `tool` (the COMET tool bit for bit); GPUs have only `paper`.
    Without `network_energy` networks spend no energy, as in the original tool. Times
    are cycles on accelerators and nanoseconds on GPUs, energies are pJ. Raises
    CometError, with the location, for what cannot be priced.
    """
    with errors_as_sentences():
        prices = [
            priced(
                module_of(part, installed_context()),
                "the hardware",
                model,
                network_energy=network_energy,
            )
            for part in mappings_in(program) or (program,)
        ]
        return prices[0] if len(prices) == 1 else in_turn(prices)


def question(
    program: Program,
    hardware: FilePath,
    constraints: PathOrText | Mapping[str, object] | None = None,
    *,
    model: ModelName = "paper",
    objective: Objective = "latency",
    time_limit: float = 60.0,
    tolerance: float = 0.0,
    sampler: Sampler | None = None,
    seed: int = 0,
    samples: int = 1000,
    start: PathOrText | None = None,
    allow_artifacts: bool = False,
) -> Question:
    """
    Return the question that `explore` answers for the same arguments.

    `explore_all` takes several.

    The files are read at once. Raises CometError if an argument is wrong.
    """
    with errors_as_sentences():
        return Question(
            source_of(program),
            Source.read(hardware),
            _constraints(constraints),
            model,
            objective,
            time_limit,
            tolerance,
            None if sampler is None else Sampling(sampler, seed, samples),
            None if start is None else Source.of(start),
            allow_artifacts,
        )


def explore(
    program: Program,
    hardware: FilePath,
    constraints: PathOrText | Mapping[str, object] | None = None,
    *,
    model: ModelName = "paper",
    objective: Objective = "latency",
    time_limit: float = 60.0,
    tolerance: float = 0.0,
    sampler: Sampler | None = None,
    seed: int = 0,
    samples: int = 1000,
    start: PathOrText | None = None,
    allow_artifacts: bool = False,
    store: FilePath | None = None,
    progress: Notify | None = None,
) -> Answer:
    """
    Search for the best mapping of a program on an accelerator, with a proof.

    `program` is a module with one function, or the path or text of one; `hardware` is a
    hardware file. `constraints` limit the choices, as a file, its text, or a map such
    as `{"stream": False, "dim": ["N", "M"]}` (docs/explore.md), or as what
    `Answer.mlir` returned; as `start` that is the mapping to start from, instead of a
    quick search. `objective` is what is minimized: `latency` (cycles), `energy` (pJ)
    or `edp` (their product), by `model`. The search ends after `time_limit` seconds, at
    Ctrl-C, or when the gap to the lower bound is proven to be at most `tolerance`, a
    fraction. The model `tool` has no lower bounds, so that an answer is proven only if
    every mapping was priced; with `allow_artifacts` it may take less than its transfers
    of the root memory do.

    With a `sampler` (`tpe`, `cmaes` or `nsga2`, extra `search`) it takes `samples`
    samples from `seed` instead, and is exact only about the bound. `store` is an SQLite
    file of answers: one that is kept there is returned at once, others are kept.
    `progress` is called with a `Progress` whenever a part of the space has been
    searched; by default notebooks show it. Raises CometError if an input is wrong, or
    if no mapping was found.
    """
    asked = question(
        program,
        hardware,
        constraints,
        model=model,
        objective=objective,
        time_limit=time_limit,
        tolerance=tolerance,
        sampler=sampler,
        seed=seed,
        samples=samples,
        start=start,
        allow_artifacts=allow_artifacts,
    )
    with errors_as_sentences():
        return recalled(asked, _store(store), progress or _default_progress())


def explore_all(
    questions: Sequence[Question],
    *,
    jobs: int = -1,
    engine: str = "local",
    store: FilePath | None = None,
    progress: Count | None = None,
) -> list[Result]:
    """
    Search for the answers to several questions at once (extra `search`).

    `jobs` processes of this machine search, by default one on each core; or `engine` is
    `dask://HOST:PORT` or `ray`. `store` is as for `explore`, so a call that was
    interrupted goes on where it was. `progress` is called with the numbers of answered
    questions and of all. Returns, in the order of `questions`, an `Answer` or the
    `CometError` that says why there is none. Raises CometError if an argument is wrong.
    """
    with errors_as_sentences():
        return results(
            questions, Engine(engine, jobs), _store(store), progress or _uncounted
        )


def verify(certificate: PathOrText) -> str:
    """
    Check a certificate: every bound, and the price of the best mapping.

    `certificate` is a file or its text, as `Answer.certificate` returns it; it holds
    the program, the hardware and the constraints. Returns what it proves, in one
    sentence. Raises CometError with the first false line.
    """
    with errors_as_sentences():
        return verified(Source.of(certificate))


def _constraints(source: PathOrText | Mapping[str, object] | None) -> Source:
    if source is None:
        return NOTHING
    if isinstance(source, Mapping):
        return Source(yaml.safe_dump(dict(source), sort_keys=False), NOTHING.name)
    return saved_constraints(Source.of(source))


def _default_progress() -> Notify:
    return NotebookProgress() if in_notebook() else ignored


def _store(path: FilePath | None) -> Store | None:
    return None if path is None else Store(Path(path))


def _uncounted(_answered: int, _questions: int) -> None:
    """Do nothing: the default `progress`."""
