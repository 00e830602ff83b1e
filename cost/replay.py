"""
Formulas that are traced when they are first evaluated, and then repeated.

The code of a model decides by the structure of a mapping which operations it does, and
arrays go through these. So for other arrays it need not decide again: the traced
operations, a few array operations for a screen of code, give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

KeyT = TypeVar("KeyT")

Array: TypeAlias = "NDArray[np.float64]"
"""One number, or one truth value, for each mapping."""

Figure: TypeAlias = "float | bool | np.bool_ | NDArray[np.float64] | NDArray[np.bool_]"
"""The result of a formula; a single number holds for all mappings."""

Operator: TypeAlias = Callable[..., object]
"""An operation of numpy on arrays, element by element."""

Slots: TypeAlias = tuple[int, ...]
"""Positions on a tape."""

Step: TypeAlias = tuple[Operator, int, int | None, int | None, int]
"""An operation, the registers of up to three operands, and that of the result."""


FIRST = 2
"""For how many mappings operations are recorded: those of all need more memory."""


class NotRecordable(Exception):
    """Raised where an evaluation depends on the numbers of single mappings."""


@dataclass
class Formula(Generic[KeyT]):
    """
    A function of named arrays of one length; the results have this length, too.

    It has to do the same operations for all arrays, each of them element by element.
    Where it asks for the numbers of single mappings, it is evaluated every time.
    `np.any` and `np.all` of what depends on the arrays are unknown: true and false.
    """

    evaluate: Callable[[Mapping[KeyT, Array]], Sequence[Figure]]
    _code: _RegisterCode | None = field(default=None, init=False)
    _keys: tuple[KeyT, ...] = field(default=(), init=False)
    """The names in the order of the inputs."""
    _is_recordable: bool = field(default=True, init=False)

    @property
    def is_recorded(self) -> bool:
        """Whether the next evaluation repeats recorded operations."""
        return self._code is not None

    def __call__(self, arrays: Mapping[KeyT, Array]) -> tuple[Array, ...]:
        """Return the results for `arrays`, at least one, the same names each time."""
        if self._code is None and self._is_recordable:
            self._record(arrays)
        if self._code is None:
            found = self.evaluate(arrays)
        else:
            found = self._code.run([arrays[key] for key in self._keys])
        like = next(iter(arrays.values()))
        return tuple(_spread(figure, like) for figure in found)

    def _record(self, arrays: Mapping[KeyT, Array]) -> None:
        """Note the operations, for the first mappings only, if that is possible."""
        tape = _Tape()
        first = {key: tape.new(array[:FIRST]) for key, array in arrays.items()}
        try:
            results = list(map(tape.slot, self.evaluate(first)))
            self._code = tape.code(len(first), results)
            self._keys = tuple(first)
        except NotRecordable:
            self._is_recordable = False
        finally:
            tape.values.clear()  # arrays and tape refer to each other


def _spread(figure: object, like: Array) -> Array:
    """Return a result with one element for each mapping."""
    found = cast("Array", np.asarray(figure))
    return found if found.shape == like.shape else np.broadcast_to(found, like.shape)


class _Recorded(np.ndarray):
    """An array whose operations are noted on a tape."""

    tape: _Tape | None = None
    place: int = -1
    """Its position on the tape; results of what is not an operation have none."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        """Do an operation element by element, and note it."""
        single = method == "__call__" and ufunc.nout == 1
        if not single or options or self.tape is None:
            raise NotRecordable(ufunc.__name__)
        return self.tape.note(ufunc, inputs)

    def __array_function__(
        self,
        func: Callable[..., object],
        types: Iterable[type],
        args: Iterable[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Do the same for `np.where`; see `Formula` for what is unknown."""
        operands = tuple(args)
        if func is np.where and len(operands) == 3 and self.tape is not None:
            return self.tape.note(func, operands)
        if func is np.any or func is np.all:
            return func is np.any
        if func is np.ndim:
            return self.ndim
        raise NotRecordable(func.__name__)

    def __bool__(self) -> NoReturn:
        """Nothing is decided by the number of one mapping, nor computed from it."""
        raise NotRecordable("a number of one mapping")

    def item(self, *_: object) -> NoReturn:
        """Give no number of one mapping."""
        raise NotRecordable("a number of one mapping")

    def tolist(self) -> NoReturn:
        """Give no numbers of single mappings."""
        raise NotRecordable("numbers of single mappings")

    def __getitem__(self, key: object) -> NoReturn:
        """Elements and parts are not recorded."""
        raise NotRecordable("a part of an array")

    __int__ = __float__ = __bool__


@dataclass
class _Tape:
    """Operations in the order in which they were done first; equal ones only once."""

    values: list[Array] = field(default_factory=list[Array])
    """The inputs, constants and results, by position."""
    constants: dict[tuple[str, bytes], int] = field(
        default_factory=dict[tuple[str, bytes], int]
    )
    """The position of each number, by type and bits: 0.0 is not -0.0."""
    done: dict[tuple[Operator, Slots], int] = field(
        default_factory=dict[tuple[Operator, Slots], int]
    )
    """The position of each result, by the operation and the positions of operands."""

    def new(self, array: Array) -> _Recorded:
        """Return an array at the next position."""
        self.values.append(array)
        return self._at(len(self.values) - 1)

    def _at(self, place: int) -> _Recorded:
        """Return the array at a position, as another object each time."""
        recorded = self.values[place].view(_Recorded)
        recorded.tape, recorded.place = self, place
        return recorded

    def slot(self, value: object) -> int:
        """Return the position of an array, or that of a number, which is constant."""
        if isinstance(value, _Recorded):
            if value.tape is not self:
                raise NotRecordable("a view")
            return value.place
        number = np.asarray(value)
        if number.ndim:
            raise NotRecordable("an array from elsewhere")
        key = number.dtype.char, number.tobytes()
        if (place := self.constants.get(key)) is None:
            place = self.constants[key] = len(self.values)
            self.values.append(number)
        return place

    def note(self, operator: Operator, operands: Sequence[object]) -> _Recorded:
        """
        Return the result of an operation.

        A known result is another object each time, as without a tape: sums add up the
        terms of one object first, which rounds otherwise.
        """
        slots = tuple([self.slot(operand) for operand in operands])
        key, values = (operator, slots), self.values
        if (place := self.done.get(key)) is None:
            result = cast("Array", operator(*[values[slot] for slot in slots]))
            place = self.done[key] = len(values)
            values.append(result)
        return self._at(place)

    def code(self, inputs: int, results: Sequence[int]) -> _RegisterCode:
        """Return what computes the values at the positions `results`."""
        constants = {place: self.values[place] for place in self.constants.values()}
        return _RegisterCode.of(range(inputs), constants, self.done, results)


@dataclass(frozen=True)
class _RegisterCode:
    """Operations on registers; a register is used again when its value is not."""

    registers: list[object]
    """The constants, in their registers; what is in the others does not matter."""
    steps: list[Step]
    results: tuple[int, ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[int],
        constants: Mapping[int, Array],
        operations: Mapping[tuple[Operator, Slots], int],
        results: Sequence[int],
    ) -> _RegisterCode:
        """Return the operations that the results need, in registers."""
        last = _last_uses(operations, results)
        kept = {*inputs, *constants, *results}
        register = {place: n for n, place in enumerate((*inputs, *constants))}
        registers: list[object] = [*[None] * len(inputs), *constants.values()]
        free, steps = list[int](), list[Step]()
        for (operator, slots), place in operations.items():
            if place not in last:
                continue
            used = [register[slot] for slot in slots]
            dying = {slot for slot in slots if last[slot] == place} - kept
            free += [register[slot] for slot in dying]
            if not free:
                free.append(len(registers))
                registers.append(None)
            register[place] = free.pop()
            second = used[1] if len(used) > 1 else None
            third = used[2] if len(used) > 2 else None
            steps.append((operator, used[0], second, third, register[place]))
        return cls(registers, steps, tuple(register[place] for place in results))

    def run(self, inputs: Sequence[Array]) -> tuple[object, ...]:
        """Return the results for other inputs."""
        registers = list(self.registers)
        registers[: len(inputs)] = inputs
        for operator, first, second, third, result in self.steps:
            if second is None:
                registers[result] = operator(registers[first])
            elif third is None:
                registers[result] = operator(registers[first], registers[second])
            else:
                registers[result] = operator(
                    registers[first], registers[second], registers[third]
                )
        return tuple(registers[result] for result in self.results)


def _last_uses(
    operations: Mapping[tuple[Operator, Slots], int], results: Sequence[int]
) -> Mapping[int, int]:
    """
    Return the places that the results need, each with the place of its last use.

    Operations come after those of their operands. That of a result is the place itself,
    if no operation uses it.
    """
    last = {place: place for place in results}
    for (_, slots), place in reversed([*operations.items()]):
        if place in last:
            for slot in slots:
                last.setdefault(slot, place)
    return last
