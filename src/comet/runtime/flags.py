"""Flags as the host reads them: integers at addresses."""

import ctypes

INTEGERS = {
    1: ctypes.c_int8,
    2: ctypes.c_int16,
    4: ctypes.c_int32,
    8: ctypes.c_int64,
}
"""Signed integers by their width in bytes."""


def flag_value(address: int, width: int) -> int:
    """Return the value of a flag of `width` bytes."""
    return INTEGERS[width].from_address(address).value
