"""The launch numbers of a grid node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import CLUSTER, LAUNCH_NUMBERS, SPECIALIZE, SUBTILES

PERSISTENT = "persistent"
"""The keyword before the number of persistent programs."""
RESIDENT = "resident"
"""The keyword for persistent programs that keep what all of their tiles read."""
PARTS = "parts"
"""The parts of results, among the launch numbers."""
REGISTERS = "registers"
"""The most registers of a thread, among the launch numbers."""


@irdl_attr_definition
class LaunchAttr(ParametrizedAttribute):
    """
    The launch numbers of a grid node.

    `warps` per program, num_stages of the software pipeline (`stages`), and L2 swizzle
    (`group`): the number of programs along the loops before the last one that start
    before the last one advances. `persistent` is the number of persistent programs,
    each of which computes one tile after another; without it each tile has a program.
    With `resident` these programs load the operands of products that all tiles read
    once. With `specialize`, producer warps load what the others multiply. `subtiles` is
    the number of those of an epilogue, see `split-epilogues`; without it, one. `parts`
    is the number of parts in which descriptors store results, see `stage-stores`;
    without it pointers do. A thread has `registers` at most, so that as many programs
    run at a time as are launched; without it, as many as the compiler takes. `cluster`
    is the number of thread blocks of a program, each with a part of the columns;
    without it, one.

    ```mlir
    schedule.launch = #schedule.launch<warps = 4, stages = 3, group = 1>
    #schedule.launch<warps = 4, stages = 3, group = 8, persistent = 132>
    #schedule.launch<warps = 8, stages = 3, group = 8, subtiles = 4>
    #schedule.launch<warps = 8, stages = 2, group = 1, persistent = 132, resident>
    #schedule.launch<warps = 4, stages = 2, group = 1, specialize, persistent = 132>
    #schedule.launch<warps = 8, stages = 4, group = 8, persistent = 132, parts = 2>
    #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 660, registers = 96>
    #schedule.launch<warps = 8, stages = 3, group = 1, cluster = 4>
    ```
    """

    name = "schedule.launch"

    warps_: IntAttr = param_def()
    stages_: IntAttr = param_def()
    group_: IntAttr = param_def()
    specialize_: IntAttr = param_def()
    persistent_: IntAttr = param_def()
    resident_: IntAttr = param_def()
    parts_: IntAttr = param_def()
    subtiles_: IntAttr = param_def()
    registers_: IntAttr = param_def()
    cluster_: IntAttr = param_def()

    def __init__(
        self,
        warps: int = 4,
        stages: int = 3,
        group: int = 1,
        persistent: int = 0,
        *,
        resident: int = 0,
        specialize: int = 0,
        parts: int = 0,
        subtiles: int = 0,
        registers: int = 0,
        cluster: int = 1,
    ):
        flags = int(specialize), persistent, int(resident), parts, subtiles, registers
        super().__init__(*map(IntAttr, (warps, stages, group, *flags, cluster)))

    @property
    def warps(self) -> int:
        """Warps per program."""
        return self.warps_.data

    @property
    def stages(self) -> int:
        """num_stages: stages of the software pipeline."""
        return self.stages_.data

    @property
    def group(self) -> int:
        """The L2 swizzle: programs along other loops before the last one advances."""
        return self.group_.data

    @property
    def specialize(self) -> bool:
        """Whether producer warps load, see `specialize-warps`."""
        return bool(self.specialize_.data)

    @property
    def persistent(self) -> int:
        """The most programs that are launched, 0 for a program per tile."""
        return self.persistent_.data

    @property
    def resident(self) -> bool:
        """Whether persistent programs load what all of their tiles read once."""
        return bool(self.resident_.data)

    @property
    def parts(self) -> int:
        """The parts of results that descriptors store, 0 if pointers store them."""
        return self.parts_.data

    @property
    def subtiles(self) -> int:
        """The subtiles in which an epilogue is computed, 0 for whole tiles."""
        return self.subtiles_.data

    @property
    def registers(self) -> int:
        """The most registers of a thread, 0 for as many as the compiler takes."""
        return self.registers_.data

    @property
    def cluster(self) -> int:
        """The thread blocks of a program."""
        return self.cluster_.data

    @property
    def numbers(self) -> dict[str, int]:
        """The launch numbers that plans name; those that are not given are left out."""
        values = self.warps, self.stages, self.group
        numbers = dict(zip(LAUNCH_NUMBERS, values, strict=True))
        found = {SPECIALIZE: int(self.specialize), SUBTILES: self.subtiles}
        found[CLUSTER] = self.cluster if self.cluster > 1 else 0
        return numbers | {name: number for name, number in found.items() if number}

    def replaced(self, **numbers: int) -> LaunchAttr:
        """Return the launch numbers with `numbers`, named as in `__init__`, changed."""
        kept = {PERSISTENT: self.persistent, RESIDENT: self.resident}
        kept |= {PARTS: self.parts, REGISTERS: self.registers}
        return LaunchAttr(**self.numbers | kept | numbers)

    def verify(self) -> None:
        if min(self.warps, self.stages, self.group) < 1 or self.persistent < 0:
            raise VerifyException("launch numbers are positive")
        if self.registers < 0:
            raise VerifyException(f"registers are 1 or more, got {self.registers}")
        if self.resident and not self.persistent:
            raise VerifyException("only persistent programs are resident")
        if self.cluster > 1 and (self.specialize or self.persistent):
            raise VerifyException(
                "programs that are clusters are not persistent, and have no producer "
                "warps"
            )
        powers = {"parts": self.parts or 1, "subtiles": self.subtiles or 1}
        powers |= {"cluster": self.cluster, "warps": self.warps}
        for name, number in powers.items():
            if not is_power_of_two(number):
                raise VerifyException(
                    f"{name} is a power of two, got {number}; {powers_around(number)}"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        numbers: list[IntAttr] = []
        with parser.in_angle_brackets():
            for index, key in enumerate(LAUNCH_NUMBERS):
                if index:
                    parser.parse_punctuation(",")
                parser.parse_keyword(key)
                parser.parse_punctuation("=")
                numbers.append(IntAttr(parser.parse_integer()))
            numbers += map(IntAttr, _parse_flags(parser))
        return numbers

    def print_parameters(self, printer: Printer) -> None:
        numbers = self.numbers
        texts = [f"{key} = {numbers[key]}" for key in LAUNCH_NUMBERS]
        texts += [SPECIALIZE] * self.specialize
        if self.subtiles:
            texts.append(f"{SUBTILES} = {self.subtiles}")
        if self.persistent:
            texts.append(f"{PERSISTENT} = {self.persistent}")
        texts += [RESIDENT] * self.resident
        if self.parts:
            texts.append(f"{PARTS} = {self.parts}")
        if self.registers:
            texts.append(f"{REGISTERS} = {self.registers}")
        if self.cluster > 1:
            texts.append(f"{CLUSTER} = {self.cluster}")
        with printer.in_angle_brackets():
            printer.print_string(", ".join(texts))


def powers_around(number: int) -> str:
    """Return the advice to take the power of two below a number, or the one above."""
    if number < 1:
        return "take 1"
    below = 1 << (number.bit_length() - 1)
    return f"take {below} or {2 * below}"


def _parse_flags(parser: AttrParser) -> Iterable[int]:
    """Parse what may follow the launch numbers; what does not is the default."""
    names = SPECIALIZE, PERSISTENT, RESIDENT, PARTS, SUBTILES, REGISTERS
    found = dict.fromkeys(names, 0) | {CLUSTER: 1}
    while parser.parse_optional_punctuation(",") is not None:
        if (name := parser.parse_identifier()) not in found:
            parser.raise_error(f"expected one of {', '.join(found)}")
        found[name] = 1
        if name not in (SPECIALIZE, RESIDENT):
            parser.parse_punctuation("=")
            found[name] = parser.parse_integer()
    return found.values()
