"""Programs that gather rows: along any axis, by ids of any rank, read by any op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

TABLE = {"P": 5, "V": 11, "D": 6}
IDS: Mapping[str, Mapping[str, int]] = {
    "one": {},
    "list": {"T": 7},
    "grid": {"B": 3, "T": 5},
}
"""The dimensions of ids."""

Write: TypeAlias = Callable[[Mapping[str, int], str, Mapping[str, int], bool], str]
"""Writes @main for a table, the axis of the ids, the ids, and whether it computes."""


def tensor(extents: Mapping[str, int], element: str = "f32") -> str:
    """Return the type of a tensor."""
    shape = "".join(f"{extent}x" for extent in extents.values())
    return f"tensor<{shape}{element}, #compound.dims<{', '.join(extents)}>>"


def taken(table: Mapping[str, int], along: str, ids: Mapping[str, int]) -> str:
    """Return the type of what is gathered."""
    return tensor(gathered(table, along, ids))


def gathered(
    table: Mapping[str, int], along: str, ids: Mapping[str, int]
) -> dict[str, int]:
    """Return the extents of what is gathered."""
    extents: dict[str, int] = {}
    for dim, extent in table.items():
        extents |= ids if dim == along else {dim: extent}
    return extents


def programs(write: Write | None = None) -> Iterator[tuple[str, str]]:
    """
    Yield @main by name: a gather along each axis of tables of each rank.

    With `write`, that function writes the programs.
    """
    write = write or program
    ranks = [dict(list(TABLE.items())[first:]) for first in range(3)]
    for table, kind in product(ranks, IDS):
        for along in table:
            for made in (False, True):
                made_name = "computed" if made else "given"
                name = f"{along}_of_{''.join(table)}_{kind}_{made_name}"
                yield name, write(table, along, IDS[kind], made)


def program(
    table: Mapping[str, int], along: str, ids: Mapping[str, int], made: bool
) -> str:
    """Return @main, which maps, multiplies, reduces and returns what it gathers."""
    rows, whole = gathered(table, along, ids), tensor(table)
    first = f"%e = compound.map tanh %x : {whole} -> {whole}" if made else ""
    base = "%e" if made else "%x"
    lines = [
        first,
        f'%v = compound.gather {base}, %i along "{along}"',
        f"  : {whole}, {tensor(ids, 'i32')} -> {tensor(rows)}",
        f"%m = compound.map erf %v : {tensor(rows)} -> {tensor(rows)}",
    ]
    arguments = [f"%x: {whole}", f"%i: {tensor(ids, 'i32')}"]
    results = {"%m": rows, "%v": rows}
    if rows:
        last = [*rows][-1]
        kept = {dim: extent for dim, extent in rows.items() if dim != last}
        weights, made_of = {last: rows[last], "W": 7}, {**kept, "W": 7}
        arguments.append(f"%w: {tensor(weights)}")
        lines += [
            f"%p = compound.contract %v, %w : {tensor(rows)}, {tensor(weights)}",
            f"  -> {tensor(made_of)}",
            f"%r = compound.reduce max %v : {tensor(rows)} -> {tensor(kept)}",
        ]
        results |= {"%p": made_of, "%r": kept}
    types = ", ".join(map(tensor, results.values()))
    body = "\n      ".join(lines)
    return f"""
    func.func @main({", ".join(arguments)}) -> ({types}) {{
      {body}
      func.return {", ".join(results)} : {types}
    }}"""


X = "tensor<9x6xf32, #compound.dims<V, D>>"
IDS_OF_X = "tensor<7xi32, #compound.dims<T>>"
ROWS_OF_X = "tensor<7x6xf32, #compound.dims<T, D>>"

THROUGH_VIEWS = {
    "part_of_ids": """
      %j = compound.slice %i "T" [2, 4] : !I -> tensor<4xi32, #compound.dims<T>>
      %y = compound.gather %x, %j along "V" : !X, tensor<4xi32, #compound.dims<T>>
        -> tensor<4x6xf32, #compound.dims<T, D>>""",
    "part_of_rows": """
      %r = compound.gather %x, %i along "V" : !X, !I -> !TD
      %s = compound.slice %r "T" [3, 4] : !TD -> tensor<4x6xf32, #compound.dims<T, D>>
      %y = compound.slice %s "D" [1, 4] : tensor<4x6xf32, #compound.dims<T, D>>
        -> tensor<4x4xf32, #compound.dims<T, D>>""",
    "part_of_table": """
      %t = compound.slice %x "V" [1, 8] : !X -> tensor<8x6xf32, #compound.dims<V, D>>
      %r = compound.slice %t "D" [2, 3] : tensor<8x6xf32, #compound.dims<V, D>>
        -> tensor<8x3xf32, #compound.dims<V, D>>
      %y = compound.gather %r, %i along "V" : tensor<8x3xf32, #compound.dims<V, D>>, !I
        -> tensor<7x3xf32, #compound.dims<T, D>>""",
    "ids_in_two": """
      %j = compound.concat "T" %i, %i : !I, !I -> tensor<14xi32, #compound.dims<T>>
      %r = compound.gather %x, %j along "V" : !X, tensor<14xi32, #compound.dims<T>>
        -> tensor<14x6xf32, #compound.dims<T, D>>
      %y = compound.rename %r split "D" : tensor<14x6xf32, #compound.dims<T, D>>
        -> tensor<14x2x3xf32, #compound.dims<T, E, F>>""",
    "split_rows": """
      %j = compound.slice %i "T" [1, 6] : !I -> tensor<6xi32, #compound.dims<T>>
      %r = compound.gather %x, %j along "V" : !X, tensor<6xi32, #compound.dims<T>>
        -> tensor<6x6xf32, #compound.dims<T, D>>
      %y = compound.rename %r split "T" : tensor<6x6xf32, #compound.dims<T, D>>
        -> tensor<2x3x6xf32, #compound.dims<B, S, D>>""",
    "merged_rows": """
      %r = compound.gather %x, %i along "V" : !X, !I -> !TD
      %y = compound.rename %r merge "T" : !TD -> tensor<42xf32, #compound.dims<E>>""",
    "merged_pages": """
      %t = compound.map exp %x : !X -> !X
      %r = compound.gather %t, %i along "V" : !X, !I -> !TD
      %s = compound.rename %r merge "T" : !TD -> tensor<42xf32, #compound.dims<E>>
      %y = compound.slice %s "E" [5, 31] : tensor<42xf32, #compound.dims<E>>
        -> tensor<31xf32, #compound.dims<E>>""",
    "parts_of_merged": """
      %r = compound.gather %x, %i along "V" : !X, !I -> !TD
      %s = compound.rename %r merge "T" : !TD -> tensor<42xf32, #compound.dims<E>>
      %y = compound.rename %s split "E" : tensor<42xf32, #compound.dims<E>>
        -> tensor<3x14xf32, #compound.dims<P, Q>>""",
    "positions_merged": """
      %j = compound.index : tensor<4xi32, #compound.dims<S>>
      %r = compound.gather %x, %j along "V" : !X, tensor<4xi32, #compound.dims<S>>
        -> tensor<4x6xf32, #compound.dims<S, D>>
      %s = compound.rename %r merge "S" : tensor<4x6xf32, #compound.dims<S, D>>
        -> tensor<24xf32, #compound.dims<E>>
      %y = compound.rename %s : tensor<24xf32, #compound.dims<E>>
        -> tensor<24xf32, #compound.dims<F>>""",
    "joined_rows": """
      %r = compound.gather %x, %i along "V" : !X, !I -> !TD
      %y = compound.concat "T" %r, %r : !TD, !TD
        -> tensor<14x6xf32, #compound.dims<T, D>>""",
    "joined_table": """
      %t = compound.concat "V" %x, %x : !X, !X -> tensor<18x6xf32, #compound.dims<V, D>>
      %y = compound.gather %t, %i along "V" : tensor<18x6xf32, #compound.dims<V, D>>, !I
        -> !TD""",
    "rows_of_rows": """
      %r = compound.gather %x, %i along "V" : !X, !I -> !TD
      %k = compound.index : tensor<3xi32, #compound.dims<S>>
      %y = compound.gather %r, %k along "T" : !TD, tensor<3xi32, #compound.dims<S>>
        -> tensor<3x6xf32, #compound.dims<S, D>>""",
    "ids_of_ids": """
      %k = compound.index : tensor<3xi32, #compound.dims<S>>
      %j = compound.gather %i, %k along "T" : !I, tensor<3xi32, #compound.dims<S>>
        -> tensor<3xi32, #compound.dims<S>>
      %y = compound.gather %x, %j along "V" : !X, tensor<3xi32, #compound.dims<S>>
        -> tensor<3x6xf32, #compound.dims<S, D>>""",
    "computed_ids": """
      %o = compound.fill 1.0 : tensor<i32, #compound.dims<>>
      %l = compound.fill 8.0 : tensor<i32, #compound.dims<>>
      %n = compound.map add %i, %o : !I, tensor<i32, #compound.dims<>> -> !I
      %j = compound.map min %n, %l : !I, tensor<i32, #compound.dims<>> -> !I
      %r = compound.gather %x, %j along "V" : !X, !I -> !TD
      %u = compound.gather %x, %i along "V" : !X, !I -> !TD
      %y = compound.map sub %r, %u : !TD, !TD -> !TD""",
    "constant_table": """
      %f = compound.fill 2.5 : !X
      %r = compound.gather %f, %i along "V" : !X, !I -> !TD
      %u = compound.gather %x, %i along "V" : !X, !I -> !TD
      %y = compound.map mult %r, %u : !TD, !TD -> !TD""",
    "renamed_table": """
      %t = compound.rename %x : !X -> tensor<9x6xf32, #compound.dims<T, U>>
      %j = compound.rename %i : !I -> tensor<7xi32, #compound.dims<V>>
      %r = compound.gather %t, %j along "T" : tensor<9x6xf32, #compound.dims<T, U>>,
        tensor<7xi32, #compound.dims<V>> -> tensor<7x6xf32, #compound.dims<V, U>>
      %y = compound.rename %r : tensor<7x6xf32, #compound.dims<V, U>> -> !TD""",
}
"""Lines that make %y of a table %x and of ids %i, by views before and after."""


def through_views() -> Iterator[tuple[str, str]]:
    """Yield @main, which maps %y of each entry, by name."""
    for name, lines in THROUGH_VIEWS.items():
        text = lines.replace("!TD", ROWS_OF_X).replace("!X", X).replace("!I", IDS_OF_X)
        type_ = text.rsplit("-> ", 1)[1]
        yield (
            name,
            f"""
    func.func @main(%x: {X}, %i: {IDS_OF_X}) -> ({type_}, {type_}) {{{text}
      %z = compound.map tanh %y : {type_} -> {type_}
      func.return %z, %y : {type_}, {type_}
    }}""",
        )


OF_RANKS = """
!WHOLE = tensor<4x8x12xf32, #compound.dims<D, M, N>>
!PARTS = tensor<4x8x12xf32, #compound.dims<rank, M, N>>
!PART = tensor<1x8x12xf32, #compound.dims<rank, M, N>>
!RANK = tensor<1xi32, #compound.dims<rank>>
collective.mesh @ranks {rank = 4}
func.func @main(%a: !WHOLE) -> !PARTS {
  %0 = collective.spmd on @ranks ins(%a : !WHOLE) sharded [{}]
      outs(!PARTS) sharded [{rank = ["rank"]}] {
  ^bb0(%x: !WHOLE):
    %i = compound.index of 4 over ["rank"] : !RANK
    %p = compound.gather %x, %i along "D" : !WHOLE, !RANK -> !PART
    %m = compound.map tanh %p : !PART -> !PART
    collective.yield %m : !PART
  }
  func.return %0 : !PARTS
}
func.func private @main__reference(%x: !WHOLE) -> !PARTS attributes {comet.reference} {
  %p = compound.rename %x : !WHOLE -> !PARTS
  %m = compound.map tanh %p : !PARTS -> !PARTS
  func.return %m : !PARTS
}"""
"""Of what all ranks have, each takes the part of its number."""


EMBEDDING = """
!V = tensor<{V}x{D}xbf16, #compound.dims<V, D>>
!I = tensor<{T}xi32, #compound.dims<T>>
!X = tensor<{T}x{D}xbf16, #compound.dims<T, D>>
!W = tensor<{D}x{N}xbf16, #compound.dims<D, N>>
!Y = tensor<{T}x{N}xf32, #compound.dims<T, N>>
func.func @main(%table: !V, %ids: !I, %w: !W) -> !Y {{
  %x = compound.gather %table, %ids along "V" : !V, !I -> !X
  %y = compound.contract %x, %w : !X, !W -> !Y
  func.return %y : !Y
}}"""
"""Rows of a table times weights, at any extents."""


def paged(b: int, h: int, g: int, d: int, j: int, r: int, p: int) -> str:
    """
    Return @main, one step of attention to keys and values in pages.

    There are `b` sequences of at most `j` of the `p` pages of `r` keys each, and `g`
    queries for each of `h` heads, of size `d`.
    """
    extents = {"B": b, "H": h, "G": g, "D": d, "J": j, "R": r, "P": p, "S": j * r}

    def of(dims: str, element: str = "f16") -> str:
        return tensor({dim: extents[dim] for dim in dims}, element)

    scores, rows, sums = of("BHGS", "f32"), of("BHG", "f32"), of("BHGD", "f32")
    number = of("", "f32")
    lines = [
        f'%kp = compound.gather %keys, %pages along "P" : {of("PRHD")}, '
        f"{of('BJ', 'i32')} -> {of('BJRHD')}",
        f'%vp = compound.gather %values, %pages along "P" : {of("PRHD")}, '
        f"{of('BJ', 'i32')} -> {of('BJRHD')}",
        f'%k = compound.rename %kp merge "J" : {of("BJRHD")} -> {of("BSHD")}',
        f'%v = compound.rename %vp merge "J" : {of("BJRHD")} -> {of("BSHD")}',
        f"%qk = compound.contract %q, %k : {of('BHGD')}, {of('BSHD')} -> {scores}",
        f"%size = compound.fill {d**-0.5} : {number}",
        f"%scaled = compound.map mult %qk, %size : {scores}, {number} -> {scores}",
        f"%s = compound.index : {of('S', 'i32')}",
        f"%seen = compound.map gt %lens, %s : {of('B', 'i32')}, {of('S', 'i32')} "
        f"-> {of('BS', 'i1')}",
        f"%low = compound.fill -1.0e+30 : {number}",
        f"%masked = compound.map select %seen, %scaled, %low : {of('BS', 'i1')}, "
        f"{scores}, {number} -> {scores}",
        f"%top = compound.reduce max %masked : {scores} -> {rows}",
        f"%less = compound.map sub %masked, %top : {scores}, {rows} -> {scores}",
        f"%e = compound.map exp %less : {scores} -> {scores}",
        f"%l = compound.reduce add %e : {scores} -> {rows}",
        f"%w = compound.map div %e, %l : {scores}, {rows} -> {scores}",
        f"%h = compound.cast %w : {scores} -> {of('BHGS')}",
        f"%sums = compound.contract %h, %v : {of('BHGS')}, {of('BSHD')} -> {sums}",
        f"%o = compound.cast %sums : {sums} -> {of('BHGD')}",
    ]
    body = "\n      ".join(lines)
    return f"""
    func.func @main(%q: {of("BHGD")}, %keys: {of("PRHD")}, %values: {of("PRHD")},
        %pages: {of("BJ", "i32")},
        %lens: {of("B", "i32")} {{compound.at_most = {j * r} : i64}}) -> {of("BHGD")} {{
      {body}
      func.return %o : {of("BHGD")}
    }}"""
