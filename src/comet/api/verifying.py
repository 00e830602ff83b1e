"""The check of a certificate."""

from __future__ import annotations

from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.api.program import installed_context, parsed
from comet.api.saved import MAPPING_PASSES, mapping_passes
from comet.api.source import Source
from comet.cost.estimate import CostError, figure_text
from comet.cost.from_ir.mapping import problem_of
from comet.passes.attach_hardware import attach_hardware
from comet.passes.explore.certificate import (
    Certificate,
    CertificateError,
    read_certificate,
)
from comet.passes.explore.constraints import read_constraints
from comet.passes.explore.meets import unmet
from comet.passes.explore.space import StructureSpace
from comet.passes.explore.verify import verify
from comet.passes.pipeline import run_passes
from comet.passes.search import Goal, session
from comet.tools.checks import verify_module


def verified(file: Source) -> str:
    """
    Check every line of a certificate; return a sentence that says what it proves.

    Raises CertificateError with the first false line.
    """
    certificate = read_certificate(file.text, file.name)
    try:
        _check(certificate, file.name)
    except CertificateError as error:
        raise CertificateError(f"{file.name}: {error}") from error
    value, lower_bound = certificate.value, certificate.lower_bound
    gap = 100 * (1 - lower_bound / value)
    bound = f"no mapping below {figure_text(lower_bound)} (gap {gap:.2f} %)"
    if lower_bound == 0:
        bound = "and nothing is said of other mappings"
    count = len(certificate.claims)
    return (
        f"{file.name}: true; model {certificate.model}, {certificate.objective} "
        f"{figure_text(value)}, {bound}, {count} structure{'' if count == 1 else 's'}"
    )


def _check(certificate: Certificate, path: str) -> None:
    ctx = installed_context()
    module = parsed(certificate.program, f"{path}: program", ctx)
    attach_hardware(module, certificate.hardware, f"{certificate.system}.yaml")
    passes, mapped = _pipeline(certificate), module.clone()
    try:
        run_passes(passes, ctx, mapped)
        verify_module(mapped)
        problem_of(mapped)
    except (PassFailedException, CostError) as error:
        raise CertificateError(f"the pipeline makes no mapping: {error}") from error
    goal = Goal(certificate.model, certificate.objective)
    constraints = read_constraints(certificate.constraints, f"{path}: constraints")
    if (key := unmet(passes, constraints, ctx, module)) is not None:
        raise CertificateError(f"the best mapping does not meet the constraint '{key}'")
    allowed = certificate.allow_artifacts
    space = StructureSpace(ctx, module, goal, constraints, allow_artifacts=allowed)
    with session() as current, current.allowing_artifacts(allowed):
        verify(certificate, space, mapped)


def _pipeline(certificate: Certificate) -> tuple[ModulePass, ...]:
    """
    Return the passes that make the best mapping.

    Raises CertificateError for a pass that does not belong to the mapping.
    """
    try:
        return mapping_passes(certificate.pipeline)
    except ValueError as error:
        raise CertificateError(
            "the pipeline has to map the program with known options of "
            f"{', '.join(MAPPING_PASSES)}"
        ) from error
