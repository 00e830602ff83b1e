"""Prints `tl.kernel` operations as `triton.jit` functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from comet.codegen.python_text import (
    INDENT,
    WIDTH,
    Expr,
    PythonNames,
    Variables,
    wrapped,
)
from comet.codegen.triton.expressions import REMOTE, expression
from comet.dialects import tl

IMPORTED = (
    *("allow_descriptors", "dot_operand"),
    *("float", "np", "range", "tl", "torch", "triton"),
    *REMOTE.values(),
)
"""Names that no variable of a kernel may have."""


def comment_of(op: Operation) -> str | None:
    """Return the text of the operation's `tl.comment`, if it has one."""
    comment = op.attributes.get(tl.COMMENT)
    return comment.data if isinstance(comment, StringAttr) else None


def is_inline(op: Operation) -> bool:
    """
    Whether the operation is printed inside the expression of its one user.

    Constants always are; pure operations are if their value has no name and the user is
    in the same block.
    """
    if isinstance(op, tl.ConstantOp):
        return True
    if not op.has_trait(Pure) or len(op.results) != 1:
        return False
    (result,) = op.results
    users = [use.operation for use in result.uses]
    return (
        result.name_hint is None
        and len(users) == 1
        and users[0].parent is op.parent
        and not isinstance(users[0], tl.ForOp)
    ) or _is_initial_value(op, users)


def _is_initial_value(op: Operation, users: list[Operation]) -> bool:
    """Whether its only use is an init arg of a loop, whose variable has a name."""
    return (
        len(users) == 1
        and isinstance(loop := users[0], tl.ForOp)
        and loop.parent is op.parent
        and op.results[0] in loop.inits
    )


def _decorator(kernel: tl.KernelOp) -> str:
    """
    Return the decorator of the kernel.

    Triton compiles separate kernels for integers that are 1 or multiples of 16. It must
    not for the rank: the second kernel would come late on a rank that others wait for.
    """
    names = parameter_names(kernel)
    integers = [
        f'"{names[arg.index]}"' for arg in kernel.body.block.args if arg.type == i32
    ]
    if not integers:
        return "@triton.jit"
    return f"@triton.jit(do_not_specialize=[{', '.join(integers)}])"


def launch_options(op: tl.LaunchOp) -> Iterator[str]:
    """Yield the options of a launch for Triton's compiler, as keyword arguments."""
    numbers = {
        "num_warps": op.warps,
        "num_stages": op.stages,
        "maxnreg": op.registers,
        "num_ctas": op.cluster,
    }
    for name, number in numbers.items():
        if number is not None:
            yield f"{name}={number.value.data}"


def parameter_names(kernel: tl.KernelOp) -> list[str]:
    """Return the Python names of the kernel's parameters, in order."""
    names = PythonNames(IMPORTED)
    return [names.fresh(arg.name_hint or "v") for arg in kernel.body.block.args]


class KernelPrinter:
    """Prints the body of one kernel; values become Python variables."""

    def __init__(self, kernel: tl.KernelOp):
        names = parameter_names(kernel)
        self._variables = Variables((*IMPORTED, *names))
        self._variables.update(zip(kernel.body.block.args, names, strict=True))
        self._bound: list[str] = []
        self._indices: set[str] = set()
        """
        The names of the indices of loops that have ended. To Triton these still exist:
        in a later loop, a value of that name would change the type of a variable.
        """
        self._lines: list[str] = []
        self._kernel = kernel

    def lines(self) -> list[str]:
        """Return the lines of the function, decorator included."""
        arguments = self._kernel.body.block.args
        parameters = ", ".join(
            self._variables[arg]
            + (": tl.constexpr" if isinstance(arg.type, tl.COMPILE_TIME) else "")
            for arg in arguments
        )
        header = f"def {self._kernel.sym_name.data}({parameters}):"
        self._lines = [_decorator(self._kernel), *wrapped(header, "")]
        if (comment := comment_of(self._kernel)) is not None:
            self._lines.append(f'{INDENT}"""{comment}"""')
        self._block(self._kernel.body.block, INDENT)
        return self._lines

    def _bind(self, value: SSAValue) -> str:
        name = self._variables.bind(value, "v")
        self._bound.append(name)
        return name

    def _read(self, value: SSAValue) -> Expr:
        if (variable := self._variables.get(value)) is not None:
            return Expr(variable)
        assert isinstance(value.owner, Operation)
        return expression(value.owner, self._read)

    def _block(self, block: Block, indent: str) -> None:
        start = len(self._lines)
        for op in block.ops:
            if not is_inline(op):
                self._statement(op, indent)
        if len(self._lines) == start:
            self._lines.append(f"{indent}pass")

    def _statement(self, op: Operation, indent: str) -> None:
        match op:
            case tl.ReturnOp():
                pass
            case tl.ForOp():
                self._loop(op, indent)
            case tl.IfOp():
                self._branch(op, indent)
            case tl.YieldOp():
                if isinstance(op.parent_op(), tl.ForOp):
                    self._yield(op, indent)
            case tl.DebugBarrierOp():
                self._emit("tl.debug_barrier()", comment_of(op), indent)
            case tl.StoreOp():
                self._store(op, indent)
            case tl.AtomicAddOp():
                self._add(op, indent)
            case _:
                text = expression(op, self._read).text
                names = ", ".join(self._assigned(result) for result in op.results)
                line = f"{names} = {text}" if names else text
                self._emit(line, inlined_comment(op), indent)

    def _assigned(self, result: SSAValue) -> str:
        """Name a result; a parameter's symmetric address has the parameter's name."""
        op = result.owner
        if (
            isinstance(op, tl.SymmetricAddressOp | tl.RankAndProgramIdOp)
            and result is op.results[0]
        ):
            parameter = op.operands[0]
            if len(list(parameter.uses)) == 1 and parameter in self._variables:
                self._variables[result] = self._variables[parameter]
                return self._variables[result]
        return self._bind(result)

    def _emit(self, line: str, comment: str | None, indent: str) -> None:
        """Append a line; its comment follows on the line, or is above if it is long."""
        suffix = "" if comment is None else f"  # {comment}"
        if len(indent) + len(line) + len(suffix) <= WIDTH:
            self._lines.append(indent + line + suffix)
            return
        if comment is not None:
            self._lines.append(f"{indent}# {comment}")
        self._lines += wrapped(line, indent)

    def _store(self, op: tl.StoreOp, indent: str) -> None:
        arguments = [self._read(op.ptr).text, self._read(op.value).text]
        if op.mask is not None:
            arguments.append(f"mask={self._read(op.mask).text}")
        if op.cache is not None:
            arguments.append(f"cache_modifier={self._read(op.cache).text}")
        self._emit(f"tl.store({', '.join(arguments)})", comment_of(op), indent)

    def _add(self, op: tl.AtomicAddOp, indent: str) -> None:
        arguments = [self._read(op.ptr).text, self._read(op.value).text]
        if op.mask is not None:
            arguments.append(f"mask={self._read(op.mask).text}")
        arguments.append('sem="relaxed"')
        self._emit(f"tl.atomic_add({', '.join(arguments)})", comment_of(op), indent)

    def _branch(self, op: tl.IfOp, indent: str) -> None:
        """Print both blocks; different names keep Triton from merging equal blocks."""
        outside = len(self._bound)
        self._lines.append("")
        self._lines.append(f"{indent}if {self._read(op.condition).text}:")
        self._block(op.then.block, indent + INDENT)
        if not isinstance(op.otherwise.block.first_op, tl.YieldOp):
            self._lines.append(f"{indent}else:")
            self._block(op.otherwise.block, indent + INDENT)
        self._variables.names.release(self._bound[outside:])
        del self._bound[outside:]
        self._lines.append("")

    def _loop(self, op: tl.ForOp, indent: str) -> None:
        index, *iter_args = op.body.block.args
        self._lines.append("")
        if (comment := comment_of(op)) is not None:
            self._lines.append(f"{indent}# {comment}")
        for init, argument in zip(op.inits, iter_args, strict=True):
            text = self._read(init).text
            self._emit(f"{self._bind(argument)} = {text}", None, indent)
        bounds = ", ".join(self._read(v).text for v in (op.lower, op.upper, op.step))
        if bounds.startswith("0, ") and bounds.endswith(", 1"):
            bounds = bounds[3:-3]
        options = "".join(_loop_options(op))
        loop = f"tl.range({bounds}{options})" if options else f"range({bounds})"
        outside, name = len(self._bound), self._index(index)
        self._lines.append(f"{indent}for {name} in {loop}:")
        self._block(op.body.block, indent + INDENT)
        self._variables.names.release(self._bound[outside:])
        del self._bound[outside:]
        self._indices.add(name)
        self._variables.names.reserve(self._indices)
        for argument, result in zip(iter_args, op.results, strict=True):
            self._variables[result] = self._variables[argument]
        self._lines.append("")

    def _index(self, index: SSAValue) -> str:
        """Name the index of a loop; the name of a loop that has ended may be reused."""
        self._variables.names.release(self._indices)
        name = self._bind(index)
        self._indices.discard(name)
        self._variables.names.reserve(self._indices)
        return name

    def _yield(self, op: tl.YieldOp, indent: str) -> None:
        loop = op.parent_op()
        assert isinstance(loop, tl.ForOp)
        moves = [
            (self._variables[argument], self._read(value).text)
            for argument, value in zip(
                loop.body.block.args[1:], op.arguments, strict=True
            )
        ]
        moves = [(target, text) for target, text in moves if target != text]
        if _interfere(moves):
            targets, texts = zip(*moves, strict=True)
            self._emit(f"{', '.join(targets)} = {', '.join(texts)}", None, indent)
            return
        comments = {self._read(v).text: _producer_comment(v) for v in op.arguments}
        for target, text in moves:
            self._emit(f"{target} = {text}", comments[text], indent)


def inlined_comment(op: Operation) -> str | None:
    """Return the operation's comment, or that of one printed inside its expression."""
    if (comment := comment_of(op)) is not None:
        return comment
    inside = (_producer_comment(value) for value in op.operands)
    return next((comment for comment in inside if comment is not None), None)


def _producer_comment(value: SSAValue) -> str | None:
    """Return the comment of an operation that is printed inside its user."""
    owner = value.owner
    if isinstance(owner, Operation) and is_inline(owner):
        return inlined_comment(owner)
    return None


def _loop_options(loop: tl.ForOp) -> Iterator[str]:
    """Yield the options of a loop as arguments of `tl.range`, besides its bounds."""
    if loop.warp_specialize is not None:
        yield ", warp_specialize=True"
    if loop.num_stages is not None:
        yield f", num_stages={loop.num_stages.value.data}"


def _interfere(moves: list[tuple[str, str]]) -> bool:
    """Whether a later assignment would read a variable that an earlier one changed."""
    return any(
        re.search(rf"\b{target}\b", text)
        for position, (target, _) in enumerate(moves)
        for _, text in moves[position + 1 :]
    )
