"""Takes the safeguards of the shim away, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

from comet import runtime

XCHG = "    tl.atomic_xchg(target, value, "
ADD = "    tl.atomic_add(target, value, "
XCHG_ALL = "    tl.atomic_xchg(targets, value, mask=there, "
ADD_ALL = "    tl.atomic_add(targets, value, mask=there, "
SEEN = "    seen = tl.atomic_add(flags, 0, mask=there, "
POLL = "    while tl.atomic_add(flag, 0, "
LAST = "    if tl.atomic_add(counters + 1, 1, "
ARRIVE = "    last = tl.atomic_add(counter, 1, "

MUTATIONS: dict[str, tuple[str, str]] = {
    "signal without barrier": (f"    tl.debug_barrier()\n{XCHG}", XCHG),
    "signal relaxed": (f'{XCHG}sem="release"', f'{XCHG}sem="relaxed"'),
    "signal in one gpu": (
        f'{XCHG}sem="release", scope="sys"',
        f'{XCHG}sem="release", scope="gpu"',
    ),
    "signal to its own rank": (
        "    target = rebase(flag, current, remote, heap_bases, 4)\n"
        f"    tl.debug_barrier()\n{XCHG}",
        "    target = rebase(flag, current, current, heap_bases, 4)\n"
        f"    tl.debug_barrier()\n{XCHG}",
    ),
    "count without barrier": (f"    tl.debug_barrier()\n{ADD}", ADD),
    "count relaxed": (f'{ADD}sem="release"', f'{ADD}sem="relaxed"'),
    "count in one gpu": (
        f'{ADD}sem="release", scope="sys"',
        f'{ADD}sem="release", scope="gpu"',
    ),
    "signal all without barrier": (f"    tl.debug_barrier()\n{XCHG_ALL}", XCHG_ALL),
    "signal all relaxed": (f'{XCHG_ALL}sem="release"', f'{XCHG_ALL}sem="relaxed"'),
    "signal all in one gpu": (
        f'{XCHG_ALL}sem="release", scope="sys"',
        f'{XCHG_ALL}sem="release", scope="gpu"',
    ),
    "signal all to its own rank": (
        "(flag, current, ranks % world, heap_bases)",
        "(flag, current, current + 0 * ranks, heap_bases)",
    ),
    "signal all but the last": (", ranks < world\n", ", ranks < world - 1\n"),
    "count all without barrier": (f"    tl.debug_barrier()\n{ADD_ALL}", ADD_ALL),
    "count all relaxed": (f'{ADD_ALL}sem="release"', f'{ADD_ALL}sem="relaxed"'),
    "count all in one gpu": (
        f'{ADD_ALL}sem="release", scope="sys"',
        f'{ADD_ALL}sem="release", scope="gpu"',
    ),
    "wait all relaxed": (f'{SEEN}sem="acquire"', f'{SEEN}sem="relaxed"'),
    "wait all in one gpu": (
        f'{SEEN}sem="acquire", scope="sys"',
        f'{SEEN}sem="acquire", scope="gpu"',
    ),
    "wait for all but the last": ("numbers < count", "numbers < count - 1"),
    "wait relaxed": (
        f'{POLL}sem="acquire", scope="sys"',
        f'{POLL}sem="relaxed", scope="sys"',
    ),
    "wait in one gpu": (
        f'{POLL}sem="acquire", scope="sys"',
        f'{POLL}sem="acquire", scope="gpu"',
    ),
    "epoch without barrier": (f"    tl.debug_barrier()\n{LAST}", LAST),
    "epoch relaxed": (f'{LAST}sem="acq_rel"', f'{LAST}sem="relaxed"'),
    "epoch not counted anew": ("        tl.store(counters + 1, 0)\n", ""),
    "epoch not published": ("        tl.store(counters, epoch)\n", ""),
    "epoch published by all": (" == programs - 1:", " >= 0:"),
}
"""What to replace in the shim's source, and by what."""

ARRIVALS: dict[str, tuple[str, str]] = {
    "arrival without barrier": (f"    tl.debug_barrier()\n{ARRIVE}", ARRIVE),
    "arrival relaxed": (f'{ARRIVE}sem="acq_rel"', f'{ARRIVE}sem="relaxed"'),
    "arrival that only releases": (f'{ARRIVE}sem="acq_rel"', f'{ARRIVE}sem="release"'),
    "arrival that only acquires": (f'{ARRIVE}sem="acq_rel"', f'{ARRIVE}sem="acquire"'),
    "counter that is not set to 0": (
        "        tl.store(counter, 0)\n",
        "        pass\n",
    ),
    "all but one arrive": (" == arrivals - 1\n", " == arrivals - 2\n"),
    "one more arrives": (" == arrivals - 1\n", " == arrivals\n"),
}
"""The same for programs that arrive at counters."""

VERBS = (
    "signal",
    "signal_add",
    "signal_all",
    "signal_add_all",
    "wait",
    "wait_all",
    "next_epoch",
    "finish_epoch",
)
"""The functions of the shim that order something."""


SHIM = Path(runtime.__file__).parent / "shim.py"


def weakened(name: str) -> str:
    """Return the source of the shim without one safeguard."""
    source = SHIM.read_text()
    old, new = (MUTATIONS | ARRIVALS)[name]
    assert source.count(old) == 1, f"{name}: the shim's source has changed"
    return source.replace(old, new)


@contextmanager
def mutated(name: str) -> Generator[None]:
    """Let the kernels of `rank_kernels` use a shim without one safeguard."""
    import rank_kernels

    from comet.runtime import shim

    with TemporaryDirectory() as folder:
        path = Path(folder) / "mutated_shim.py"
        path.write_text(weakened(name))
        spec = spec_from_file_location("mutated_shim", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for function in VERBS:
            setattr(rank_kernels, function, getattr(module, function))
        try:
            yield
        finally:
            for function in VERBS:
                setattr(rank_kernels, function, getattr(shim, function))
            del sys.modules[spec.name]
