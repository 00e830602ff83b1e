"""Programs that add rows where ids say: along any axis, of values from any op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import gather_programs
from gather_programs import gathered, tensor

Extents = Mapping[str, int]


def programs() -> Iterator[tuple[str, str]]:
    """Yield @main by name: sums into each axis of results of each rank."""
    return gather_programs.programs(program)


def program(table: Extents, into: str, ids: Extents, made: bool) -> str:
    """Return @main, which maps and returns the sums of values and of their squares."""
    rows, whole = tensor(gathered(table, into, ids)), tensor(table)
    types = f"{rows}, {tensor(ids, 'i32')} -> {whole}"
    base = "%e" if made else "%x"
    lines = [
        f"%e = compound.map tanh %x : {rows} -> {rows}" if made else "",
        f'%s = compound.scatter_add {base}, %i into "{into}" : {types}',
        f"%q = compound.map mult {base}, {base} : {rows}, {rows} -> {rows}",
        f'%t = compound.scatter_add %q, %i into "{into}" : {types}',
        f"%m = compound.map erf %t : {whole} -> {whole}",
    ]
    body = "\n      ".join(lines)
    return f"""
    func.func @main(%x: {rows}, %i: {tensor(ids, "i32")}) -> ({whole}, {whole}) {{
      {body}
      func.return %s, %m : {whole}, {whole}
    }}"""


AROUND = {
    "of_a_product": """
      %p = compound.contract %x, %w : !TD, !DN -> !TN
      %y = compound.scatter_add %p, %i into "V" : !TN, !I -> !VN""",
    "read_by_a_product": """
      %s = compound.scatter_add %x, %i into "V" : !TD, !I -> !VD
      %y = compound.contract %s, %w : !VD, !DN -> !VN""",
    "beside_their_values": """
      %e = compound.map tanh %x : !TD -> !TD
      %s = compound.scatter_add %e, %i into "V" : !TD, !I -> !VD
      %r = compound.reduce add %e : !TD -> !T
      %y = compound.map mult %s, %s : !VD, !VD -> !VD
      %u = compound.map exp %r : !T -> !T""",
    "twice": """
      %e = compound.map tanh %x : !TD -> !TD
      %s = compound.scatter_add %e, %i into "V" : !TD, !I -> !VD
      %y = compound.scatter_add %e, %k into "V" : !TD, !I -> !VD
      %u = compound.map add %s, %y : !VD, !VD -> !VD""",
    "into_chosen": """
      %s = compound.scatter_add %x, %i into "V" : !TD, !I -> !VD
      %y = compound.gather %s, %k along "V" : !VD, !I -> !TD
      %u = compound.scatter_add %y, %i into "V" : !TD, !I -> !VD""",
    "by_computed_ids": """
      %o = compound.fill 8.0 : tensor<i32, #compound.dims<>>
      %j = compound.map sub %o, %i : tensor<i32, #compound.dims<>>, !I -> !I
      %e = compound.map tanh %x : !TD -> !TD
      %y = compound.scatter_add %e, %j into "V" : !TD, !I -> !VD""",
    "by_positions": """
      %o = compound.fill 8.0 : tensor<i32, #compound.dims<>>
      %p = compound.index : !I
      %j = compound.map sub %o, %p : tensor<i32, #compound.dims<>>, !I -> !I
      %e = compound.map tanh %x : !TD -> !TD
      %y = compound.scatter_add %e, %j into "V" : !TD, !I -> !VD""",
    "by_ids_of_their_values": """
      %o = compound.fill 8.0 : tensor<i32, #compound.dims<>>
      %r = compound.reduce add %x : !TD -> !T
      %m = compound.reduce max %x : !TD -> !T
      %c = compound.map ge %r, %m : !T, !T -> tensor<7xi1, #compound.dims<T>>
      %n = compound.map select %c, %i, %o : tensor<7xi1, #compound.dims<T>>, !I,
        tensor<i32, #compound.dims<>> -> !I
      %y = compound.scatter_add %r, %n into "V" : !T, !I
        -> tensor<9xf32, #compound.dims<V>>""",
    "by_chosen_ids": """
      %z = compound.rename %k : !I -> tensor<7xi32, #compound.dims<W>>
      %n = compound.gather %z, %h along "W" : tensor<7xi32, #compound.dims<W>>,
        !I -> !I
      %y = compound.scatter_add %x, %n into "V" : !TD, !I -> !VD""",
    "of_parts": """
      %j = compound.slice %i "T" [2, 4] : !I -> tensor<4xi32, #compound.dims<T>>
      %p = compound.slice %x "T" [3, 4] : !TD -> tensor<4x6xf32, #compound.dims<T, D>>
      %s = compound.scatter_add %p, %j into "V" : tensor<4x6xf32, #compound.dims<T, D>>,
        tensor<4xi32, #compound.dims<T>> -> !VD
      %y = compound.slice %s "V" [1, 5] : !VD
        -> tensor<5x6xf32, #compound.dims<V, D>>""",
    "of_heads": """
      %p = compound.rename %x split "D" : !TD
        -> tensor<7x2x3xf32, #compound.dims<T, H, E>>
      %y = compound.scatter_add %p, %i into "V"
        : tensor<7x2x3xf32, #compound.dims<T, H, E>>, !I
        -> tensor<9x2x3xf32, #compound.dims<V, H, E>>""",
    "of_sums": """
      %r = compound.reduce add %x : !TD -> !T
      %y = compound.scatter_add %r, %i into "V" : !T, !I
        -> tensor<9xf32, #compound.dims<V>>""",
    "into_itself": """
      %m = compound.reduce max %x : !TD -> !T
      %c = compound.map sub %x, %m : !TD, !T -> !TD
      %e = compound.map exp %c : !TD -> !TD
      %y = compound.scatter_add %e, %i into "V" : !TD, !I -> !VD
      %u = compound.scatter_add %c, %k into "V" : !TD, !I -> !VD""",
    "narrow": """
      %n = compound.cast %x : !TD -> tensor<7x6xf16, #compound.dims<T, D>>
      %y = compound.scatter_add %n, %i into "V" : tensor<7x6xf16, #compound.dims<T, D>>,
        !I -> tensor<9x6xf16, #compound.dims<V, D>>""",
    "of_integers": """
      %n = compound.map mult %k, %k : !I, !I -> !I
      %y = compound.scatter_add %n, %i into "V" : !I, !I
        -> tensor<9xi32, #compound.dims<V>>""",
}

TYPES = {
    "!TD": tensor({"T": 7, "D": 6}),
    "!DN": tensor({"D": 6, "N": 5}),
    "!TN": tensor({"T": 7, "N": 5}),
    "!VN": tensor({"V": 9, "N": 5}),
    "!VD": tensor({"V": 9, "D": 6}),
    "!T": tensor({"T": 7}),
    "!I": tensor({"T": 7}, "i32"),
}


def around() -> Iterator[tuple[str, str]]:
    """Yield @main by name: sums between other ops, through views, of several types."""
    for name, lines in AROUND.items():
        results = [
            (line.split(" = ")[0].strip(), line.rsplit("-> ", 1)[1].strip())
            for line in lines.replace("\n        ", " ").strip().splitlines()
            if line.split(" = ")[0].strip() in ("%y", "%u")
        ]
        names, types = (", ".join(each) for each in zip(*results, strict=True))
        text = f"""
    func.func @main(%x: !TD, %w: !DN, %i: !I, %k: !I, %h: !I) -> ({types}) {{{lines}
      func.return {names} : {types}
    }}"""
        for alias, type_ in TYPES.items():
            text = text.replace(f"{alias},", f"{type_},").replace(
                f"{alias} ", f"{type_} "
            )
            text = text.replace(f"{alias}\n", f"{type_}\n").replace(
                f"{alias})", f"{type_})"
            )
        yield name, text
