"""
Reads Triton's IR and the assembly of a compiled kernel.

`faults` says what would make a kernel wrong on several ranks, `slow_paths` what makes
it slow. Both only read text. The IR shows what was requested, the assembly what the
compiler made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from comet.runtime.control_flow import Jumps, in_order
from comet.runtime.store_targets import stores


class Event(Enum):
    """The effect of a line of code on synchronization."""

    STORE = auto()
    """A store to global memory."""
    THROUGH = auto()
    """A store that is written through the caches of this GPU."""
    DRAIN = auto()
    """Waits until the stores of this wave are complete."""
    BARRIER = auto()
    """A barrier of all threads of the program."""
    RELEASE = auto()
    """Sets a flag at the scope of those that wait, after all earlier stores."""
    ACQUIRE = auto()
    """Reads a flag at the scope of those that signal, before all later loads."""


STORES = (Event.STORE, Event.THROUGH)


@dataclass(frozen=True)
class Language:
    """The patterns of events in one kind of text; the first match counts."""

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


SYSTEM, GPU_SCOPE = "sys", "gpu"
"""The scopes of flags: of all ranks, or of the programs of one GPU."""


def _triton_ir(release: str, scope: str) -> Language:
    return _language(
        {
            Event.RELEASE: rf"tt\.atomic_(rmw \w+,|cas) ({release}), {scope}",
            Event.ACQUIRE: rf"tt\.atomic_(rmw \w+,|cas) acquire, {scope}",
            Event.BARRIER: r"\b(ttg|gpu)\.barrier",
            Event.THROUGH: r"\btt\.store .*= wt\b",
            Event.STORE: r"\btt\.store ",
        }
    )


TRITON_IR = {
    SYSTEM: _triton_ir("release|acq_rel", SYSTEM),
    GPU_SCOPE: _triton_ir("release", GPU_SCOPE),
}
"""By the scope of flags; in one GPU, what counts programs is no flag."""


def _ptx(scope: str) -> Language:
    return _language(
        {
            Event.RELEASE: rf"^\s*(@\S+ )?(atom|red)\S*\.{scope}\.(release|acq_rel)\.",
            Event.ACQUIRE: rf"^\s*(@\S+ )?(atom|ld)\S*\.{scope}\.acquire\.",
            Event.BARRIER: r"^\s*(bar\.sync|barrier\.sync)",
            Event.STORE: r"^\s*(@\S+ )?st\.global",
        }
    )


def _amdgcn(bits: str) -> Language:
    return _language(
        {
            Event.RELEASE: rf"^\s*buffer_wbl2 {bits}\s*$",
            Event.ACQUIRE: rf"^\s*buffer_inv {bits}\s*$",
            Event.BARRIER: r"^\s*s_barrier",
            Event.DRAIN: r"^\s*s_waitcnt.*vmcnt\(0\)",
            Event.THROUGH: r"^\s*(global|buffer|flat)_store.* sc0 sc1",
            Event.STORE: r"^\s*(global|buffer|flat)_store",
        }
    )


@dataclass(frozen=True)
class Gpu:
    """The properties of one target that the checks use."""

    shared: int
    """Bytes of shared memory that one program may use."""
    assembly: str
    """Triton's name of the text."""
    languages: Mapping[str, Language]
    """By the scope of flags."""
    jumps: Jumps
    atomic: re.Pattern[str]
    """An atomic, whatever its order and scope."""
    matrix: re.Pattern[str]
    """A matrix instruction."""
    bulk: re.Pattern[str] | None
    """A copy of a block by a tensor descriptor; None if there are none."""
    remote: re.Pattern[str] | None
    """A load from another thread block of a cluster; None if there are no clusters."""
    copies: bool
    """Whether loops can load to shared memory asynchronously."""
    drains: bool
    """Whether stores before a barrier must be written through and waited for."""


GPUS: Mapping[str, Gpu] = {
    "sm_90": Gpu(
        shared=227 * 1024,
        assembly="ptx",
        languages={scope: _ptx(scope) for scope in (SYSTEM, GPU_SCOPE)},
        jumps=Jumps(
            label=re.compile(r"(\$L__BB\w+):"),
            branch=re.compile(r"\s*(?:@\S+ )?bra\S*\s+(\$L__BB\w+);"),
            end=re.compile(r"\s*(bra\S*\s|ret;)"),
        ),
        atomic=re.compile(r"^\s*(@\S+ )?(atom|red)\.", re.MULTILINE),
        matrix=re.compile(r"^\s*(wgmma\.mma_async|mma\.sync)", re.MULTILINE),
        bulk=re.compile(r"^\s*(@\S+ )?cp\.async\.bulk\.tensor", re.MULTILINE),
        remote=re.compile(r"^\s*(@\S+ )?ld\.shared::cluster", re.MULTILINE),
        copies=True,
        drains=False,
    ),
    "gfx942": Gpu(
        shared=64 * 1024,
        assembly="amdgcn",
        languages={SYSTEM: _amdgcn("sc0 sc1"), GPU_SCOPE: _amdgcn("sc1")},
        jumps=Jumps(
            label=re.compile(r"(\.LBB\w+):"),
            branch=re.compile(r"\s*s_c?branch\S* (\.LBB\w+)"),
            end=re.compile(r"\s*(s_branch|s_endpgm)\b"),
        ),
        atomic=re.compile(r"^\s*(global|buffer|flat)_atomic", re.MULTILINE),
        matrix=re.compile(r"^\s*v_mfma", re.MULTILINE),
        bulk=None,
        remote=None,
        copies=False,
        drains=True,
    ),
}


@dataclass(frozen=True)
class Code:
    """One compiled kernel."""

    target: str
    ttir: str
    """Triton IR: made from the source, equal for all GPUs except for constants."""
    ttgir: str
    """Triton GPU IR: after layouts and software pipelines are chosen."""
    assembly: str
    shared: int
    """Bytes of shared memory per program."""
    spills: int
    """Bytes of spilled registers per thread."""
    scope: str = SYSTEM
    """The scope of its flags, or of those that are looked at."""
    others: tuple[str, ...] = ()
    """The scopes of its other flags."""
    published: frozenset[str] = frozenset()
    """The parameters whose memory other ranks access."""

    @property
    def gpu(self) -> Gpu:
        """The properties of the target."""
        return GPUS[self.target]

    def events(self) -> list[Event]:
        """Return the events of the assembly in execution order."""
        language = self.gpu.languages[self.scope]
        return language.read(in_order(self.assembly, self.gpu.jumps))

    def requested(self) -> list[Event]:
        """Return the events of Triton's IR."""
        return TRITON_IR[self.scope].read(self.ttir)

    def joined_atomics(self) -> int:
        """
        Return how many atomics of Triton's IR share an instruction with others.

        Compilers join the equal ends of branches, such as those that signal two values
        of one shape.
        """
        made = len(self.gpu.atomic.findall(self.assembly))
        return max(0, len(EVERY_ATOMIC.findall(self.ttir)) - made)

    def matrix_instructions(self) -> int:
        """Return the number of matrix instructions."""
        return len(self.gpu.matrix.findall(self.assembly))

    def bulk_copies(self) -> int:
        """Return the number of copies by tensor descriptors."""
        bulk = self.gpu.bulk
        return 0 if bulk is None else len(bulk.findall(self.assembly))

    def remote_loads(self) -> int:
        """Return the number of loads from other thread blocks of a cluster."""
        remote = self.gpu.remote
        return 0 if remote is None else len(remote.findall(self.assembly))


def _before(events: Sequence[Event], index: int) -> list[Event]:
    """Return the events between the last store before `index` and `index`."""
    start = index
    while start > 0 and events[start - 1] not in STORES:
        start -= 1
    return list(events[start:index])


def _released(events: Sequence[Event]) -> Iterator[tuple[list[Event], list[Event]]]:
    """Yield, for each release, the stores it publishes and the events after them."""
    before: list[Event] = []
    for index, event in enumerate(events):
        if event in STORES:
            before.append(event)
        elif event is Event.RELEASE:
            yield before, _before(events, index)
            before = []


# What makes a kernel wrong.


def faults(code: Code) -> tuple[str, ...]:
    """Return why a kernel would be wrong, or not run, in one sentence each."""
    scopes = (code.scope, *code.others)
    looks = (
        replace(code, scope=scope, others=tuple(o for o in scopes if o != scope))
        for scope in scopes
    )
    return tuple(dict.fromkeys(text for look in looks for text in _found(FAULTS, look)))


EVERY_ATOMIC = re.compile(r"tt\.atomic_(?:rmw|cas)\b")
ATOMIC = re.compile(r"tt\.atomic_(?:rmw (?!fadd)\w+,|cas) (\w+), (\w+)")
"""Atomics on flags and counters; floats are sums, which order nothing."""
ORDERS = ("release", "acquire", "acq_rel")
COUNTS = ("acq_rel", GPU_SCOPE)
"""The order and the scope by which the programs of a launch are counted."""


def _weak_atomics(code: Code) -> Iterator[str]:
    peers = "ranks" if code.scope == SYSTEM else "programs"
    for order, scope in ATOMIC.findall(code.ttir):
        allowed = scope in (SYSTEM, code.scope, *code.others) and order in ORDERS
        if not allowed and (order, scope) != COUNTS:
            yield (
                f"an atomic is {order} at scope {scope}: other {peers} need not see "
                "what was stored before it; use release or acquire, at scope "
                f"{code.scope}"
            )


def _lost_orders(code: Code) -> Iterator[str]:
    """Report flags whose order the compiler weakened."""
    requested, emitted = code.requested(), code.events()
    for event, name in ((Event.RELEASE, "release"), (Event.ACQUIRE, "acquire")):
        if emitted.count(event) + code.joined_atomics() < requested.count(event):
            yield (
                f"of {requested.count(event)} atomics that {name} at scope "
                f"{code.scope}, the assembly has {emitted.count(event)}"
            )


def _no_barriers(code: Code) -> Iterator[str]:
    for events in (code.requested(), code.events()):
        for _, following in _released(events):
            if Event.BARRIER not in following:
                yield (
                    "a flag is set without a barrier before it: stores of other "
                    "threads may come later; use signal, or tl.debug_barrier()"
                )


UNDRAINED = (
    "a flag is set while stores of other waves may be on their way; wait for them "
    "before the barrier, as signal does"
)


def _drained(release: tuple[list[Event], list[Event]]) -> bool:
    """Whether a wave waits for its stores before the barrier of a release."""
    _, following = release
    if Event.BARRIER not in following:
        return False
    return Event.DRAIN in following[: following.index(Event.BARRIER)]


def _kept_stores(code: Code) -> Iterator[str]:
    """
    Report stores that may be incomplete when a flag is set.

    Programs of one GPU need not write through: a release of that scope writes back the
    caches, once the stores of all waves are complete.
    """
    requested = list(_released(code.requested()))
    if not code.gpu.drains or not any(before for before, _ in requested):
        return  # flags of inputs, which other kernels stored, may follow any code
    if code.scope == GPU_SCOPE:
        drained = sum(map(_drained, _released(code.events())))
        if drained + code.joined_atomics() < len(requested):
            yield UNDRAINED
        return
    for name in _kept_in_caches(code):
        yield (
            f"a store to {name}, which a flag publishes, is not written through; give "
            'it cache_modifier=".wt"'
        )
    through = code.requested().count(Event.THROUGH)
    if through and Event.THROUGH not in code.events():
        yield f"of {through} stores that are written through, the assembly has none"
    for before, following in _released(code.events()):
        if before and not _drained((before, following)):
            yield UNDRAINED


def _kept_in_caches(code: Code) -> Iterator[str]:
    """
    Yield parameters that other ranks access, with stores that caches may keep.

    A pointer of unknown origin may be such a parameter's.
    """
    through = TRITON_IR[code.scope].events[Event.THROUGH]
    for store in stores(code.ttir):
        if not through.search(store.line):
            yield from store.parameters & code.published
            if not store.parameters:
                yield "an unknown pointer"


def _too_large(code: Code) -> Iterator[str]:
    if code.shared > code.gpu.shared:
        yield (
            f"a program takes {code.shared} bytes of shared memory, and {code.target} "
            f"has {code.gpu.shared}; take smaller tiles or fewer stages"
        )


Rule = Callable[[Code], Iterator[str]]


def _found(rules: Sequence[Rule], code: Code) -> tuple[str, ...]:
    """Return the findings of rules on a kernel, each sentence once."""
    return tuple(dict.fromkeys(text for rule in rules for text in rule(code)))


FAULTS: Sequence[Rule] = (
    _weak_atomics,
    _lost_orders,
    _no_barriers,
    _kept_stores,
    _too_large,
)


# What makes a kernel slow.


def slow_paths(code: Code) -> tuple[str, ...]:
    """Return the slow paths of a kernel, one sentence each."""
    return _found(SLOW_PATHS, code)


@dataclass
class Loop:
    """The contents of a loop of Triton's IR."""

    counted: bool
    """Whether it is a `for` loop."""
    products: int = 0
    """Matrix products in the loop itself, not in nested loops."""
    loads: int = 0
    """Loads of two-dimensional blocks in the loop itself, which the loop waits for."""
    copies: int = 0
    """Asynchronous copies to shared memory in the loop itself."""
    carried: int = 0
    """Blocks in shared memory among the loop's iter_args."""
    waits: int = 0
    """Flags that are read in the loop or in nested loops."""
    outer: bool = False
    """Whether a nested loop has matrix products."""


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


def _unspecialized(code: Code) -> Iterator[str]:
    if "tt.warp_specialize" in code.ttir and "setmaxnreg" not in code.assembly:
        yield (
            "a loop is to have warps that load what others multiply, and the compiler "
            "made none; give the kernel four warps, or use specialize=false"
        )


SLOW_PATHS: Sequence[Rule] = (_spilled, _unpipelined, _unspecialized)
