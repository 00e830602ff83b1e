"""
Options that name kernels, some with a number: `"f_c_kernel f_d_kernel=66"`.

`all` and `none` are short for all kernels that can, and for no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import KernelOp

ALL, NONE = "all", "none"


def format_numbered(numbers: Iterable[tuple[KernelOp, int]]) -> str:
    """Return the text of an option that gives kernels these numbers."""
    names = (f"{kernel.sym_name.data}={number}" for kernel, number in numbers)
    return " ".join(names) or NONE


def numbered_kernels(
    pass_name: str, kernels: Mapping[str, KernelOp], text: str, numbers: str
) -> Iterator[tuple[KernelOp, int | None]]:
    """
    Yield the kernels that an option names, with the numbers after `=`, None without.

    Errors call these `numbers`, as in "programs", and do not name the option, which
    pipelines call otherwise. Raises PassFailedException for no
    name, one that is not in `kernels` or is there twice, and what is no number from 1.
    """
    left = dict(kernels)
    if not text.split():
        raise PassFailedException(
            f"{pass_name}: no kernel is named; write none for no kernel"
        )
    for entry in text.split():
        name, _, number = entry.removeprefix("@").partition("=")
        if name not in kernels:
            raise PassFailedException(
                f"{pass_name}: there is no kernel {name}; name some of "
                f"{', '.join(kernels)}, or say all or none"
            )
        if name not in left:
            raise PassFailedException(
                f"{pass_name}: kernel {name} is named twice; name it once"
            )
        if "=" in entry and not (number.isdecimal() and int(number)):
            raise PassFailedException(
                f"{pass_name}: '{entry}' is no number of {numbers}; write one from 1, "
                f"as in {name}=2"
            )
        yield left.pop(name), int(number) if number else None
