"""No safeguard of emitted modules can go: without it, the scheduler reports them."""

from collections.abc import Mapping

import pytest
from covering import EVERY_CASE, some
from emitted_mutations import MUTATIONS, PROGRAMS, mutated, right, swapped
from rank_runs import Outcome, outcomes

TRIED = dict(some(MUTATIONS.items(), 3))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    """Run the programs, right and mutated, in one child process."""
    sources = {program: right(program) for program in PROGRAMS}
    sources |= {name: mutated(mutation) for name, mutation in TRIED.items()}
    sources["consumers first"] = swapped(right("push"))
    names = {name: f"module_{number}" for number, name in enumerate(sources)}
    modules = {names[name]: source for name, source in sources.items()}
    folder = tmp_path_factory.mktemp("modules")
    became = outcomes(modules, folder, seeds=3 if EVERY_CASE else 2)
    return {name: became[names[name]] for name in names}


@pytest.mark.parametrize("program", PROGRAMS)
def test_with_all_safeguards_programs_are_right(
    program: str, found: Mapping[str, Outcome]
):
    assert found[program] == "right"


@pytest.mark.parametrize("name", TRIED)
def test_without_one_they_are_not(name: str, found: Mapping[str, Outcome]):
    mutation = MUTATIONS[name]
    assert mutated(mutation) != right(mutation.program)
    assert found[name] in mutation.outcomes


def test_consumers_that_are_launched_first_wait_for_ever(
    found: Mapping[str, Outcome],
):
    assert found["consumers first"] == "DeadlockError"
