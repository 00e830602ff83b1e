"""Passes that rewrite the functions of a module one by one."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from comet.dialects.errors import about
from comet.passes.analysis.levels import IRLevel, functions_at


@dataclass(frozen=True)
class FunctionPass(ModulePass):
    """
    A pass that rewrites one function after the other, references excepted.

    It raises PassFailedException before it rewrites anything if a function is not at
    one of its levels (`functions_at`). An error that names no op is about the function.
    """

    LEVELS: ClassVar[tuple[IRLevel, ...]]
    """The levels of the functions that the pass takes."""

    TAKES_COPIES: ClassVar[bool] = False
    """Whether it takes functions with `schedule.copy`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module that is no reference."""
        functions = functions_at(op, self.name, *self.LEVELS, copies=self.TAKES_COPIES)
        for function in functions:
            with about(function):
                self.rewrite(function, op)

    @abstractmethod
    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        """Rewrite a function of `module`."""
