"""
What a compiled kernel does, read off Triton's IR and the assembly for a GPU.

`faults` says what would make a kernel wrong on several ranks, `slow_paths` what makes
it slow. Both read text only: nothing is compiled here. The IR shows what was asked for,
the assembly whether it was done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from comet.runtime.control_flow import Jumps, in_order


class Event(Enum):
    """What a line of code does that synchronisation depends on."""

    STORE = auto()
    """A store to global memory."""
    THROUGH = auto()
    """A store that is not kept in caches of this GPU."""
    DRAIN = auto()
    """Waits until the stores of this wave are done."""
    BARRIER = auto()
    """All threads of the program meet."""
    RELEASE = auto()
    """Sets a flag, for all ranks, after what was stored before."""
    ACQUIRE = auto()
    """Reads a flag that any rank may have set, before what is loaded later."""


STORES = (Event.STORE, Event.THROUGH)


@dataclass(frozen=True)
class Language:
    """How one kind of text says events and instructions; the first match counts."""

    events: Mapping[Event, re.Pattern[str]]

    def read(self, text: str) -> list[Event]:
        """Return the events of a text, in order."""
        return [event for line in text.splitlines() for event in self._of(line)]

    def _of(self, line: str) -> Iterator[Event]:
        for event, pattern in self.events.items():
            if pattern.search(line):
                yield event
                return


def _language(events: Mapping[Event, str]) -> Language:
    return Language({event: re.compile(text) for event, text in events.items()})


TRITON_IR = _language(
    {
        Event.RELEASE: r"tt\.atomic_(rmw \w+,|cas) (release|acq_rel), sys",
        Event.ACQUIRE: r"tt\.atomic_(rmw \w+,|cas) acquire, sys",
        Event.BARRIER: r"\b(ttg|gpu)\.barrier",
        Event.THROUGH: r"\btt\.store .*= wt\b",
        Event.STORE: r"\btt\.store ",
    }
)


@dataclass(frozen=True)
class Gpu:
    """What the checks know of one target."""

    shared: int
    """Bytes of shared memory that one program may have."""
    assembly: str
    """Triton's name of the text."""
    language: Language
    jumps: Jumps
    matrix: re.Pattern[str]
    """A matrix instruction."""
    copies: bool
    """Whether loops copy to shared memory while they compute, by instructions of it."""
    drains: bool
    """Whether stores have to be written through, and waited for, before a barrier."""


GPUS: Mapping[str, Gpu] = {
    "sm_90": Gpu(
        shared=227 * 1024,
        assembly="ptx",
        language=_language(
            {
                Event.RELEASE: r"^\s*(@\S+ )?(atom|red)\S*\.sys\.(release|acq_rel)\.",
                Event.ACQUIRE: r"^\s*(@\S+ )?(atom|ld)\S*\.sys\.acquire\.",
                Event.BARRIER: r"^\s*(bar\.sync|barrier\.sync)",
                Event.STORE: r"^\s*(@\S+ )?st\.global",
            }
        ),
        jumps=Jumps(
            label=re.compile(r"(\$L__BB\w+):"),
            branch=re.compile(r"\s*(?:@\S+ )?bra\S*\s+(\$L__BB\w+);"),
            end=re.compile(r"\s*(bra\S*\s|ret;)"),
        ),
        matrix=re.compile(r"^\s*(wgmma\.mma_async|mma\.sync)", re.MULTILINE),
        copies=True,
        drains=False,
    ),
    "gfx942": Gpu(
        shared=64 * 1024,
        assembly="amdgcn",
        language=_language(
            {
                Event.RELEASE: r"^\s*buffer_wbl2 sc0 sc1",
                Event.ACQUIRE: r"^\s*buffer_inv sc0 sc1",
                Event.BARRIER: r"^\s*s_barrier",
                Event.DRAIN: r"^\s*s_waitcnt.*vmcnt\(0\)",
                Event.THROUGH: r"^\s*(global|buffer|flat)_store.* sc0 sc1",
                Event.STORE: r"^\s*(global|buffer|flat)_store",
            }
        ),
        jumps=Jumps(
            label=re.compile(r"(\.LBB\w+):"),
            branch=re.compile(r"\s*s_c?branch\S* (\.LBB\w+)"),
            end=re.compile(r"\s*(s_branch|s_endpgm)\b"),
        ),
        matrix=re.compile(r"^\s*v_mfma", re.MULTILINE),
        copies=False,
        drains=True,
    ),
}


@dataclass(frozen=True)
class Code:
    """One compiled kernel."""

    target: str
    ttir: str
    """What Triton made of the source, the same for all GPUs but for constants."""
    ttgir: str
    """The same after the choice of layouts and pipelines for the GPU."""
    assembly: str
    shared: int
    """Bytes of shared memory."""
    spills: int
    """Bytes of registers for each thread that went to memory."""

    @property
    def gpu(self) -> Gpu:
        """What is known of the target."""
        return GPUS[self.target]

    def events(self) -> list[Event]:
        """Return the events of the assembly, in the order in which it runs."""
        return self.gpu.language.read(in_order(self.assembly, self.gpu.jumps))

    def matrix_instructions(self) -> int:
        """Return the number of matrix instructions."""
        return len(self.gpu.matrix.findall(self.assembly))


def _before(events: Sequence[Event], index: int) -> list[Event]:
    """Return what is between an event and the last store before it."""
    start = index
    while start > 0 and events[start - 1] not in STORES:
        start -= 1
    return list(events[start:index])


def _released(events: Sequence[Event]) -> Iterator[tuple[list[Event], list[Event]]]:
    """Yield for each release the stores that it publishes, and what is after them."""
    stores: list[Event] = []
    for index, event in enumerate(events):
        if event in STORES:
            stores.append(event)
        elif event is Event.RELEASE:
            yield stores, _before(events, index)
            stores = []


# What makes a kernel wrong.


def faults(code: Code) -> tuple[str, ...]:
    """Return why a kernel would be wrong, or not run, in one sentence each."""
    found: dict[str, None] = {}
    for rule in FAULTS:
        found |= dict.fromkeys(rule(code))
    return tuple(found)


ATOMIC = re.compile(r"tt\.atomic_(?:rmw \w+,|cas) (\w+), (\w+)")
IN_ORDER = (
    ("release", "sys"),
    ("acquire", "sys"),
    ("acq_rel", "sys"),
    ("acq_rel", "gpu"),
)
"""Orders and scopes of atomics; the last is how programs of one launch are counted."""


def _weak_atomics(code: Code) -> Iterator[str]:
    for order, scope in ATOMIC.findall(code.ttir):
        if (order, scope) not in IN_ORDER:
            yield (
                f"an atomic is {order} at scope {scope}: other ranks need not see what "
                "was stored before it; use release or acquire, at scope sys"
            )


def _lost_orders(code: Code) -> Iterator[str]:
    """Say which flags the compiler made weaker than it was asked to."""
    asked, made = TRITON_IR.read(code.ttir), code.events()
    for event, name in ((Event.RELEASE, "release"), (Event.ACQUIRE, "acquire")):
        if made.count(event) < asked.count(event):
            yield (
                f"of {asked.count(event)} atomics that {name} at scope sys, the "
                f"assembly has {made.count(event)}"
            )


def _no_barriers(code: Code) -> Iterator[str]:
    for events in (TRITON_IR.read(code.ttir), code.events()):
        for _, following in _released(events):
            if Event.BARRIER not in following:
                yield (
                    "a flag is set without a barrier before it: stores of other "
                    "threads may come later; use signal, or tl.debug_barrier()"
                )


def _kept_stores(code: Code) -> Iterator[str]:
    """Say which stores may be on their way still when a flag is set."""
    asked = _released(TRITON_IR.read(code.ttir))
    if not code.gpu.drains or not any(stores for stores, _ in asked):
        return  # flags of inputs, which others have stored, may come after any code
    for events in (TRITON_IR.read(code.ttir), code.events()):
        if any(stores[-1:] == [Event.STORE] for stores, _ in _released(events)):
            yield (
                "the store before a flag is not written through; give what the flag "
                'publishes cache_modifier=".wt"'
            )
    for stores, following in _released(code.events()):
        waited = (
            following[: following.index(Event.BARRIER)]
            if Event.BARRIER in following
            else []
        )
        if stores and Event.DRAIN not in waited:
            yield (
                "a flag is set while stores of other waves may be on their way; wait "
                "for them before the barrier, as signal does"
            )


def _too_large(code: Code) -> Iterator[str]:
    if code.shared > code.gpu.shared:
        yield (
            f"a program takes {code.shared} bytes of shared memory, and {code.target} "
            f"has {code.gpu.shared}; take smaller tiles or fewer stages"
        )


Rule = Callable[[Code], Iterator[str]]
FAULTS: Sequence[Rule] = (
    _weak_atomics,
    _lost_orders,
    _no_barriers,
    _kept_stores,
    _too_large,
)


# What makes a kernel slow.


def slow_paths(code: Code) -> tuple[str, ...]:
    """Return what makes a kernel slower than it need be, in one sentence each."""
    found: dict[str, None] = {}
    for rule in SLOW_PATHS:
        found |= dict.fromkeys(rule(code))
    return tuple(found)


@dataclass
class Loop:
    """What is in a loop of Triton's IR."""

    counted: bool
    """Whether it is a `for` loop."""
    products: int = 0
    """Matrix products in the loop itself, not in loops within."""
    loads: int = 0
    """Loads of two-dimensional blocks in the loop itself that the loop waits for."""
    copies: int = 0
    """Copies to shared memory in the loop itself that go on meanwhile."""
    carried: int = 0
    """Blocks in shared memory that a step leaves to the next one."""
    waits: int = 0
    """Flags that are read anywhere within."""
    outer: bool = False
    """Whether a loop within has matrix products."""


PRODUCT = re.compile(r" = (tt\.dot|ttng\.warp_group_dot) ")
LOAD = re.compile(r" = tt\.load .*: tensor<\d+x\d+x")
COPY = re.compile(r"async_copy_global_to_local|async_tma_copy")


def loops(ir: str) -> list[Loop]:
    """Return the loops of a kernel in Triton's IR."""
    around: list[Loop] = []
    found: list[Loop] = []
    for line in ir.splitlines():
        if around:
            around[-1].products += bool(PRODUCT.search(line))
            around[-1].loads += bool(LOAD.search(line))
            around[-1].copies += bool(COPY.search(line))
        for loop in around if ATOMIC.search(line) else ():
            loop.waits += 1
        opened = line.count("{") - line.count("}")
        carried = line.count("!ttg.memdesc")
        around += [Loop("scf.for" in line, carried=carried) for _ in range(opened)]
        for _ in range(-opened):
            found.append(around.pop())
            if found[-1].products or found[-1].outer:
                for loop in around:
                    loop.outer = True
    return [loop for loop in found if loop.counted]


def _spilled(code: Code) -> Iterator[str]:
    if code.spills:
        yield f"{code.spills} bytes of registers of each thread are in memory"


def _unpipelined(code: Code) -> Iterator[str]:
    products = [p for p in loops(code.ttgir) if p.products and not p.outer]
    if any(loop.waits for loop in products):
        yield "a loop over products waits for flags: its loads are not pipelined"
    elif any(
        not (loop.copies if code.gpu.copies else loop.carried)
        for loop in products
        if loop.loads
    ):
        yield (
            "a loop over products waits for its loads; give it two stages, rows of "
            "whole 4 bytes, and no loop within"
        )


SLOW_PATHS: Sequence[Rule] = (_spilled, _unpipelined)
