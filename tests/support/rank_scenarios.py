"""Runs programs over several ranks in a process that interprets Triton."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from shutil import rmtree

from covering import EVERY_CASE
from interpreting import interpreted

SEEDS = range(12 if EVERY_CASE else 2)


@dataclass(frozen=True)
class Outcome:
    """What became of a scenario."""

    result: list[float]
    """What each run or rank returned."""
    error: str
    """The name of the class of the error, if any."""
    message: str


def scenarios() -> Mapping[str, Callable[[], list[float]]]:
    """Return all scenarios by name; imports Triton."""
    import rank_programs as programs
    from rank_programs import Gather, Gemm, Parts, PingPong, Pull
    from shim_mutations import MUTATIONS

    from comet.runtime import processes, scheduler
    from comet.runtime.heap import HEAP_BYTES

    def seeded(program: Callable[..., float], world: int, races: bool = True):
        return [
            max(scheduler.run(program, world, seed=seed, races=races)) for seed in SEEDS
        ]

    def scheduled(program: Callable[..., float], world: int, **options: int):
        return partial(scheduler.run, program, world, **options)

    def concurrent(program: Callable[..., float], world: int, timeout: float = 60):
        return partial(processes.run, program, world, timeout=timeout)

    def attached() -> list[float]:
        folder = processes.shared_folder(1, HEAP_BYTES)
        rank = processes.AttachedRank(folder, 0, 1)
        rmtree(folder)
        return [rank.run(Gather()) for _ in range(3)]

    return {
        "attached": attached,
        "ping-pong": partial(seeded, PingPong(10), 2),
        "long ping-pong": scheduled(PingPong(200), 2),
        "gather": partial(seeded, Gather(), 3),
        "pull": partial(seeded, Pull(), 3),
        "gemm": partial(seeded, Gemm(), 2),
        "parts": partial(seeded, Parts(), 3),
        "counted": partial(seeded, programs.counted, 3),
        "gather, 1 rank": scheduled(Gather(), 1),
        "gather, 4 ranks, 5 epochs": scheduled(Gather(epochs=5), 4),
        "gemm, 4 ranks": scheduled(Gemm(epochs=5), 4),
        "atomics": scheduled(programs.atomics, 2),
        "launches": partial(seeded, programs.launches, 1),
        "aligned rebase": scheduled(programs.Rebase(4), 2),
        "misaligned rebase": scheduled(programs.Rebase(3), 2),
        "plain interpreter": programs.without_back_end,
        "atomics, 1 rank": scheduled(programs.atomics, 1),
        "missing signal": scheduled(Gather(how="none"), 2),
        "count too high": scheduled(Gather(ahead=1), 2),
        "count too low": partial(seeded_errors, Gather(ahead=-1), 2),
        "wait before own produce": scheduled(Gather(wait_first=True), 2),
        "one buffer": partial(seeded_errors, Gather(buffers=1, epochs=2), 2),
        "one buffer, unwatched": partial(
            seeded, Gather(buffers=1, epochs=2), 3, races=False
        ),
        "relaxed": partial(seeded_errors, Gather(how="relaxed"), 2),
        "gpu scope": partial(seeded_errors, Gather(how="gpu scope"), 2),
        "without barrier": partial(seeded_errors, Gather(how="without barrier"), 2),
        "pull without wait": partial(seeded_errors, Pull(wait=False), 2),
        "allocate without barrier": partial(seeded_errors, Gather(barrier=False), 2),
        "parts too few": partial(seeded_errors, Parts(count=1), 2),
        "parts too many": scheduled(Parts(count=3), 2),
        "parts, little room": scheduled(Parts(), 2, resident=1),
        "consumer first, little room": scheduled(
            Parts(producers_first=False), 1, resident=1
        ),
        "consumer first": scheduled(Parts(producers_first=False), 1),
        "spin": scheduled(programs.spin, 2),
        "out of bounds": scheduled(programs.out_of_bounds, 2),
        "private memory": scheduled(programs.private_memory, 2),
        "unequal heaps": scheduled(programs.unequal_heaps, 3),
        "early return": scheduled(programs.early_return, 3),
        "failing host": scheduled(programs.failing_host, 2),
        "unequal counts": scheduled(programs.unequal_counts, 2),
        "full heap": scheduled(programs.full_heap, 1, heap_bytes=1 << 20),
        "raising kernel": scheduled(programs.raising_kernel, 2),
        "no room": scheduled(programs.launches, 1, resident=0),
        "no kernel": scheduled(programs.no_kernel, 1),
        "same seed": lambda: [order_of(3), order_of(3)],
        "other seeds": lambda: [order_of(seed) for seed in SEEDS],
        **{name: partial(mutated_errors, name) for name in MUTATIONS},
        "processes: ping-pong": concurrent(PingPong(50), 2),
        "processes: gather": concurrent(Gather(), 2),
        "processes: pull": concurrent(Pull(), 2),
        "processes: gemm": concurrent(Gemm(), 4),
        "processes: parts": concurrent(Parts(), 2),
        "processes: counted": concurrent(programs.counted, 2),
        "processes: atomics": concurrent(programs.atomics, 2),
        "processes: missing signal": concurrent(Gather(how="none"), 2, timeout=1),
        "processes: unequal heaps": concurrent(programs.unequal_heaps, 2),
        "processes: failing host": concurrent(programs.failing_host, 2),
        "processes: early return": concurrent(programs.early_return, 2, timeout=1),
    }


def seeded_errors(program: Callable[..., float], world: int) -> list[float]:
    """Run with every seed; raise the error of the last seed, if all seeds had one."""
    from comet.runtime import scheduler

    found: list[Exception] = []
    for seed in SEEDS:
        try:
            scheduler.run(program, world, seed=seed)
        except Exception as error:
            found.append(error)
    if len(found) == len(SEEDS):
        raise found[-1]
    return [float(len(found))]


def mutated_errors(name: str) -> list[float]:
    """Run right programs with a shim that is wrong; raise the first error."""
    from rank_programs import Gather, Parts, Pull, counted, launches
    from shim_mutations import mutated

    from comet.runtime import scheduler

    results: list[float] = []
    with mutated(name):
        for seed in range(5):
            results += scheduler.run(Gather(), 2, seed=seed)
            results += scheduler.run(Parts(), 2, seed=seed)
            results += scheduler.run(Pull(), 2, seed=seed)
            results += scheduler.run(counted, 2, seed=seed)
            results += scheduler.run(launches, 1, seed=seed)
    return results


def order_of(seed: int) -> float:
    """Return a number that tells in which order eight programs counted on rank 0."""
    import rank_programs as programs

    from comet.runtime import scheduler

    return scheduler.run(programs.order, 2, seed=seed)[0]


def outcome_of(scenario: Callable[[], list[float]]) -> Outcome:
    """Run a scenario; return what became of it."""
    try:
        return Outcome(scenario(), "", "")
    except Exception as error:
        return Outcome([], type(error).__name__, str(error))


def play(names: Iterable[str]) -> dict[str, Outcome]:
    """Run scenarios in a process of their own; return what became of them."""
    return interpreted(_played, list(names))


def _played(names: list[str]) -> dict[str, Outcome]:
    table = scenarios()
    return {name: outcome_of(table[name]) for name in names}
