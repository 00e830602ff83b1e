"""How attributes write numbers."""


def number_text(value: float) -> str:
    """
    Write a finite number so that MLIR parses the same number, as short as possible.

    A float that is a whole number keeps its point: `2.0`, `1.0e-09`, `12.5`.
    """
    if isinstance(value, int):
        return str(value)
    mantissa, e, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent
