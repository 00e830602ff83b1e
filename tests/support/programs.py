"""Programs that the tests of several passes start from, as text, of any size."""

from collections.abc import Mapping, Sequence

ODD_SIZES = ((7, 5, 13), (1, 3, 17), (8, 4, 32), (3, 11, 6))
"""(M, K, N): odd, prime and even, smaller and larger than the meshes."""
MESHES: tuple[Mapping[str, int], ...] = (
    {"rank": 1},
    {"rank": 2},
    {"rank": 4},
    {"rank": 8},
    {"cx": 2, "cy": 2, "kx": 2, "ky": 2},
)
"""Meshes of 1, 2, 4, 8 and 16 instances."""


def mesh_text(axes: Mapping[str, int]) -> str:
    """Return a mesh @mesh; the axes cx, cy lie at GB, kx, ky at OB."""
    extents = ", ".join(f"{axis} = {n}" for axis, n in axes.items())
    text = f"collective.mesh @mesh {{{extents}}}"
    if "cx" in axes:
        levels = (f'{axis} = "{"GB" if axis[0] == "c" else "OB"}"' for axis in axes)
        text += f" at {{{', '.join(levels)}}}"
    return text + "\n"


def graph_text(op: str, sizes: Sequence[int], element: str = "f16") -> str:
    """Return a function @main of one named op, `gemm_softmax` or `gemm_layernorm`."""
    m, k, n = sizes
    types = [f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>"]
    if op == "gemm_layernorm":
        types += [f"tensor<{n}x{element}>"] * 2
    names = ["%a", "%b", "%gamma", "%beta"][: len(types)]
    parameters = ", ".join(
        f"{name}: {type_}" for name, type_ in zip(names, types, strict=True)
    )
    result = f"tensor<{m}x{n}x{element}>"
    return f"""
func.func @main({parameters}) -> {result} {{
  %y = compound.{op} {", ".join(names)} : ({", ".join(types)}) -> {result}
  func.return %y : {result}
}}
"""
