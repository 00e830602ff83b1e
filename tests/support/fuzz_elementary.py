"""Random programs of elementary ops on named dimensions, with their reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from random import Random

from fuzz_program import INTEGERS, LARGEST, Program, Step, Value, fit

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 48, 130)
NAMES = ("M", "N", "K", "L", "B")
LONG = 0.15
"""The fraction of programs that are long: up to 60 ops."""
DEEP_NAMES = ("D", "E", "F")
DEEP = 0.1
"""The fraction of programs of up to 8 dimensions, and that with many of extent 1."""


def unary(p: Program) -> None:
    """A map of one value, whose result is finite."""
    kinds = ("tanh", "erf", "neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos")
    kind = p.random.choice(kinds)
    value = p.any()
    if kind == "exp":
        value = p.map("tanh", value)
    elif kind in ("log", "sqrt", "rsqrt"):
        value = p.map("exp", p.map("tanh", value))
    p.map(kind, value)


def binary(p: Program) -> None:
    """A map of two values, broadcast by name; divisors are far from zero."""
    kind = p.random.choice(("add", "sub", "mult", "div", "max", "min"))
    one, other = p.any(), p.any()
    if kind == "div":
        other = p.map("exp", p.map("tanh", other))
    p.map(kind, one, other)


def contraction(p: Program) -> None:
    """A contraction of two values that share a dimension, or an outer product."""
    one, other = p.any(), p.any()
    if not fit(one, other):
        return
    if one.element != other.element:
        one, other = p.cast(one, "f32"), p.cast(other, "f32")
    shared = [dim for dim in one.dims if dim in other.dims]
    summed = p.random.sample(shared, p.random.randint(min(1, len(shared)), len(shared)))
    dims = [d for d in dict.fromkeys((*one.dims, *other.dims)) if d not in summed]
    if p.random.random() < 0.3:
        p.random.shuffle(dims)
    if p.size(dims) <= LARGEST and p.size([*dims, *summed]) <= 50 * LARGEST:
        element = p.random.choice((one.element, "f32"))
        p.add("contract $", [one, other], dims, element)


def reduction(p: Program) -> None:
    """A sum or maximum over some dimensions."""
    value = p.any()
    if value.dims:
        dropped = p.random.sample(value.dims, p.random.randint(1, len(value.dims)))
        p.reduce(p.random.choice(("add", "max")), value, dropped)


def softmax(p: Program) -> None:
    """A softmax, sometimes without its division."""
    value = p.any()
    if not value.dims:
        return
    dim = [p.random.choice(value.dims)]
    shifted = p.map("sub", value, p.reduce("max", value, dim))
    weights = p.map("exp", shifted)
    total = p.reduce("add", weights, dim)
    if p.random.random() < 0.8:
        p.map("div", weights, total)


def attention(p: Program) -> None:
    """Attention of rows to keys, of which masks may hide some from each row."""
    query = p.any()
    keys = [n for n in p.extents if n not in query.dims]
    if not query.dims or not keys:
        return
    dim, key = p.random.choice(query.dims), p.random.choice(keys)
    rows = [name for name in query.dims if name != dim]
    pair = {key: p.extents[key], dim: query.extents[dim]}
    names = [f"%k{len(p.arguments)}", f"%w{len(p.arguments)}"]
    own, values = (Value(name, pair, query.element) for name in names)
    seen = {**{name: query.extents[name] for name in rows}, key: p.extents[key]}
    if prod(seen.values()) > LARGEST:
        return
    p.arguments += [own, values]
    scores = p.add("contract $", [query, own], seen, "f32")
    low = p.add(f"fill {p.random.choice(('-1.0e+30', '-3.0e+38'))}", [], [], "f32")
    for _ in range(p.random.choice((0, 1, 1, 1, 2))):
        where = _visible(p, scores, rows, key)
        scores = p.add("map select $", [where, scores, low], seen, "f32")
    shifted = p.map("sub", scores, p.reduce("max", scores, [key]))
    weights = p.map("exp", shifted)
    weights = p.map("div", weights, p.reduce("add", weights, [key]))
    weights = p.cast(weights, query.element)
    p.add("contract $", [weights, values], query.extents, "f32")


def _visible(p: Program, scores: Value, rows: Sequence[str], key: str) -> Value:
    """Return whether rows see keys: up to a number of keys, their position, or near."""
    extents = scores.extents
    at = p.add("index", [], {key: extents[key]}, "i32")
    if not rows or p.random.random() < 0.3:
        some = {row: extents[row] for row in rows if p.random.random() < 0.5}
        counts = Value(f"%n{len(p.arguments)}", some, "i32")
        p.arguments.append(counts)
        return p.add("map gt $", [counts, at], {**some, key: extents[key]}, "i1")
    row = p.random.choice(rows)
    place = p.add("index", [], {row: extents[row]}, "i32")
    shift = p.add(f"fill {p.random.choice((0, 0, 3, 9, -2))}", [], [], "i32")
    kind = p.random.choice(("add", "sub"))
    place = p.add(f"map {kind} $", [place, shift], {row: extents[row]}, "i32")
    pair = [at, place] if p.random.random() < 0.4 else [place, at]
    both = {row: extents[row], key: extents[key]}
    return p.add(f"map {p.random.choice(('ge', 'gt'))} $", pair, both, "i1")


def norm(p: Program) -> None:
    """What a norm is made of: a mean, by the real extent, and a variance."""
    value = p.any()
    if not value.dims:
        return
    dim = p.random.choice(value.dims)
    count = p.add(f'extent "{dim}" of $', [value], [], value.element)
    mean = p.map("div", p.reduce("add", value, [dim]), count)
    centred = p.map("sub", value, mean) if p.random.random() < 0.6 else value
    square = p.map("mult", centred, centred)
    variance = p.map("div", p.reduce("add", square, [dim]), count)
    small = p.add("fill 1.000000e-03", [], [], value.element)
    p.map("mult", centred, p.map("rsqrt", p.map("add", variance, small)))


def cast(p: Program) -> None:
    """A conversion."""
    p.cast(p.any(), p.random.choice(("f16", "f32", "bf16", "f32")))


def constant(p: Program) -> None:
    """A constant of any rank."""
    dims = p.random.sample(list(p.extents), p.random.choice((0, 0, 1)))
    number = p.random.choice(("0.0", "1.0", "-2.5", "1.0e-3", "3.0e+38"))
    p.add(
        f"fill {number}",
        [],
        dims,
        p.random.choice(("f32", "f16")) if number[0] != "3" else "f32",
    )


def position(p: Program) -> None:
    """Positions along a dimension."""
    p.add("index", [], [p.random.choice(list(p.extents))], "f32")


def condition(p: Program) -> Value:
    """A given one, or a comparison of positions or of arguments, which are exact."""
    given = [value for value in p.arguments if value.element == "i1"]
    if given and p.random.random() < 0.5:
        return p.random.choice(given)
    pairs = [
        (one, other)
        for one in p.arguments
        for other in p.arguments
        if one.element == other.element != "i1" and fit(one, other)
    ]
    if pairs and p.random.random() < 0.4:
        operands = p.random.choice(pairs)
    else:
        dims = p.random.choices(list(p.extents), k=2)
        operands = tuple(p.add("index", [], [dim], "i32") for dim in dims)
        if p.random.random() < 0.5:
            shift = p.add(f"fill {p.random.randint(-9, 9)}.0", [], [], "i32")
            kind = p.random.choice(("add", "sub", "mult", "max", "min"))
            moved = p.add(f"map {kind} $", [operands[1], shift], [dims[1]], "i32")
            operands = operands[0], moved
    kind = p.random.choice(("ge", "gt", "eq"))
    dims = list(dict.fromkeys(dim for value in operands for dim in value.dims))
    return p.add(f"map {kind} $", operands, dims, "i1")


def selection(p: Program) -> None:
    """One value where a condition holds, another one elsewhere; or 0 and 1 for it."""
    where = condition(p)
    if p.random.random() < 0.2 and p.size(where.dims) <= LARGEST:
        p.cast(where, p.random.choice(("f16", "f32")))
        return
    one, other = p.any(), p.any()
    if one.element != other.element:
        one, other = p.cast(one, "f32"), p.cast(other, "f32")
    inputs = where, one, other
    dims = list(dict.fromkeys(dim for value in inputs for dim in value.dims))
    if p.size(dims) <= LARGEST and fit(*inputs):
        p.add("map select $", inputs, dims, one.element)


def whole(p: Program) -> None:
    """Sums, differences, minima and maxima of given integers, as a float."""
    given = [value for value in p.arguments if value.element in ("i32", "i64")]
    if not given:
        return
    value = p.random.choice(given)
    for _ in range(p.random.randint(0, 3)):
        alike = [v for v in given if v.element == value.element and fit(v, value)]
        other = p.random.choice([value, *alike])
        dims = dict.fromkeys((*value.dims, *other.dims))
        if p.size(list(dims)) <= LARGEST:
            kind = p.random.choice(("add", "sub", "max", "min"))
            both = [value, other]
            value = p.add(f"map {kind} $", both, list(dims), value.element)
    if value.dims and p.random.random() < 0.4:
        dropped = p.random.sample(value.dims, 1)
        value = p.reduce(p.random.choice(("add", "max")), value, dropped)
    p.cast(value, "f32")


def counted(p: Program) -> None:
    """Integers of conditions, or of exact multiples of arguments, added up or not."""
    given = [value for value in p.arguments if value.element not in INTEGERS]
    where, element = condition(p), p.random.choice(("i32", "i64"))
    if p.random.random() < 0.5:
        eight = p.add("fill 8.0", [], [], (where := p.random.choice(given)).element)
        dims = where.dims
        where = p.add("map mult $", [where, eight], dims, where.element)
    if p.size(where.dims) > LARGEST:
        return
    value = p.cast(where, element)
    if value.dims and p.random.random() < 0.7:
        dropped = p.random.sample(value.dims, p.random.randint(1, len(value.dims)))
        value = p.reduce(p.random.choice(("add", "max")), value, dropped)
    p.cast(value, p.random.choice(("f16", "bf16", "f32")))


def renaming(p: Program) -> None:
    """A value under other names, or with one dimension as two."""
    value = p.any()
    if not value.dims:
        return
    dim = p.random.choice(value.dims)
    at, extent = value.dims.index(dim), value.extents[dim]
    number = len(p.extents)
    new, how, taken = {f"R{number}": extent}, "", 1
    kind = p.random.random()
    if kind < 0.3 and extent > 1 and extent % 2 == 0:
        new, how = {f"P{number}": 2, f"Q{number}": extent // 2}, f' split "{dim}"'
    elif kind < 0.5 and dim != value.dims[-1]:
        new = {f"R{number}": extent * value.extents[value.dims[at + 1]]}
        how, taken = f' merge "{dim}"', 2
    else:
        names = [n for n, e in p.extents.items() if e == extent]
        new = {p.random.choice([*set(names) - {*value.dims}, *new]): extent}
    p.extents |= new
    extents = list(value.extents.items())
    extents[at : at + taken] = new.items()
    p.add(f"rename ${how}", [value], dict(extents), value.element)


def part(p: Program) -> None:
    """Some positions of a dimension, sometimes under another name."""
    value = p.any()
    if not value.dims:
        return
    dim = p.random.choice(value.dims)
    size = p.random.randint(1, value.extents[dim])
    first = p.random.randint(0, value.extents[dim] - size)
    slice_, extents = f'slice $ "{dim}" [{first}, {size}]', {**value.extents, dim: size}
    p.add(slice_, [value], extents, value.element)


def joined(p: Program) -> None:
    """A value before or after others of the same dimensions, or padded."""
    value = p.any()
    if not value.dims or p.size(value.dims) > LARGEST // 4:
        return
    dim = p.random.choice(value.dims)
    if p.random.random() < 0.3:
        extent, more = value.extents[dim], p.random.choice((0, 1, 5))
        true = extent if more else p.random.randint(1, extent)
        pad = f"pad $ <{p.random.choice(('0.0', '-1.5'))} from {dim} = {true}>"
        p.add(pad, [value], {**value.extents, dim: extent + more}, value.element)
        return
    others = [
        other
        for other in p.values
        if other.dims == value.dims and other.element == value.element
        if {**other.extents, dim: 0} == {**value.extents, dim: 0}
    ]
    parts = [value, *p.random.choices(others, k=p.random.randint(1, 2))]
    p.random.shuffle(parts)
    total = sum(each.extents[dim] for each in parts)
    concat = f'concat "{dim}" $'
    p.add(concat, parts, {**value.extents, dim: total}, value.element)


def gathering(p: Program) -> None:
    """Rows of a value, chosen by given or computed ids; sometimes seen as pages."""
    value = p.any()
    if not value.dims:
        return
    dim = p.random.choice(value.dims)
    ids = _ids(p, value, value.extents[dim])
    rows: dict[str, int] = {}
    for name, extent in value.extents.items():
        rows |= ids.extents if name == dim else {name: extent}
    if prod(rows.values()) > LARGEST:
        return
    taken = p.add(f'gather $ along "{dim}"', [value, ids], rows, value.element)
    if ids.dims and dim != value.dims[-1] and p.random.random() < 0.5:
        last, new = ids.dims[-1], f"S{len(p.extents)}"
        at, (*extents,) = taken.dims.index(last), taken.extents.items()
        p.extents[new] = extents[at][1] * extents[at + 1][1]
        extents[at : at + 2] = [(new, p.extents[new])]
        p.add(f'rename $ merge "{last}"', [taken], dict(extents), value.element)


def scattering(p: Program) -> None:
    """Rows of a value, added where given or computed ids say."""
    value = p.any()
    if not value.dims:
        return
    dim, new, rows = p.random.choice(value.dims), f"R{len(p.extents)}", 7
    sums: dict[str, int] = {}
    for name, extent in value.extents.items():
        sums |= {new: rows} if name == dim else {name: extent}
    if prod(sums.values()) <= LARGEST:
        p.extents[new] = rows
        ids = _some_ids(p, {dim: value.extents[dim]}, rows)
        value = p.cast(value, "f32" if value.element == "bf16" else value.element)
        p.add(f'scatter_add $ into "{new}"', [value, ids], sums, value.element)


def _ids(p: Program, table: Value, rows: int) -> Value:
    """Return ids below `rows`, of dimensions that the table does not have."""
    given = [
        value
        for value in p.arguments
        if value.element in ("i32", "i64") and not {*value.dims} & {*table.dims}
    ]
    if given and p.random.random() < 0.5:
        return p.random.choice(given)
    names = [dim for dim in p.extents if dim not in table.dims]
    while len(names) < 2:
        names.append(f"T{len(p.extents)}")
        p.extents[names[-1]] = p.random.choice(EXTENTS)
    dims = p.random.sample(names, p.random.choice((0, 1, 1, 1, 2)))
    return _some_ids(p, {dim: p.extents[dim] for dim in dims}, rows)


def _some_ids(p: Program, dims: Mapping[str, int], rows: int) -> Value:
    """Return ids below `rows` of these extents, an argument or computed."""
    if len(dims) != 1 or p.random.random() < 0.5:
        element = p.random.choice(("i32", "i32", "i64"))
        ids = Value(f"%i{len(p.arguments)}", dims, element)
        p.arguments.append(ids)
        return ids
    element = p.random.choice(("i32", "i32", "i64"))
    ids = p.add("index", [], dims, element)
    shift = p.add(f"fill {p.random.randint(-9, 9)}.0", [], [], element)
    ids = p.add("map add $", [ids, shift], dims, element)
    for kind, limit in (("min", rows - 1), ("max", 0)):
        bound = p.add(f"fill {limit}.0", [], [], element)
        ids = p.add(f"map {kind} $", [ids, bound], dims, element)
    return ids


FOLD = """  {result} = compound.fold over "{dim}" ins({input} : {whole})
      init({init} : {carry}) step {{
  ^bb0(%chunk: {whole}, %old: {carry}):
    %now = compound.reduce {kind} %chunk : {whole} -> {carry}
    %new = compound.map {kind} %old, %now : {carry}, {carry} -> {carry}
    compound.yield %new : {carry}
  }} merge {{
  ^bb1(%x: {carry}, %y: {carry}):
    %new = compound.map {kind} %x, %y : {carry}, {carry} -> {carry}
    compound.yield %new : {carry}
  }} -> {carry}"""


def fold(p: Program) -> None:
    """A sum or maximum as a fold."""
    value = p.any()
    if not value.dims:
        return
    value, dim = p.cast(value, "f32"), p.random.choice(value.dims)
    kind, neutral = p.random.choice((("add", "0.0"), ("max", "-3.0e+38")))
    kept = {name: n for name, n in value.extents.items() if name != dim}
    init = p.add(f"fill {neutral}", [], kept, "f32")
    result = Value(f"%v{len(p.lines)}", kept, "f32")
    texts = {"whole": value.type, "carry": result.type}
    names = {"result": result.name, "input": value.name, "init": init.name}
    p.lines.append(FOLD.format(dim=dim, kind=kind, **names, **texts))
    p.values.append(result)


STEPS: tuple[Step, ...] = (
    *(unary, unary, binary, binary, binary, contraction, contraction, contraction),
    *(reduction, reduction, softmax, norm, cast, constant, position, renaming, fold),
    *(attention, attention),
    *(
        part,
        joined,
        counted,
        whole,
        selection,
        selection,
        gathering,
        gathering,
        scattering,
    ),
)


def program(
    random: Random, shared: bool = False, more: Sequence[Step] = ()
) -> tuple[str, tuple[str, ...]]:
    """
    Return a module at random, and the names of its dimensions.

    If it is `shared`, arguments and results say what ranks have of them. With `more`
    steps, of which a third are, it has no reference.
    """
    p = Program(random, _extents(random))
    names = list(p.extents)
    for number in range(random.randint(1, 4)):
        most = len(names) if len(names) > 4 else min(len(names), 4)
        dims = random.sample(names, random.randint(min(1, number), most))
        while p.size(dims) > LARGEST:
            dims.pop()
        elements = ("f32", "f32", "f16", "bf16")
        elements += ("i1", "i32") if number else ()
        element = random.choice(elements)
        p.arguments.append(p.value(f"%a{number}", dims, element))
    p.values += [value for value in p.arguments if value.element not in INTEGERS]
    steps = random.randint(8, 24) if random.random() < LONG else random.randint(1, 7)
    for _ in range(steps):
        random.choice(more if more and random.random() < 0.3 else STEPS)(p)
    used = dict.fromkeys(dim for value in p.values for dim in value.dims)
    results = _results(p)
    if shared:
        p.share(results)
    return p.text(results, not more), tuple(used)


def _extents(random: Random) -> dict[str, int]:
    """Return the extents of dimensions: a few, or many small ones, or many of 1."""
    if random.random() < DEEP:
        names = NAMES + DEEP_NAMES[: random.randint(0, len(DEEP_NAMES))]
        return {name: random.choice((1, 2, 2, 3)) for name in names}
    extents = {n: random.choice(EXTENTS) for n in NAMES[: random.randint(1, 4)]}
    if random.random() < DEEP:
        return {n: e if random.random() < 0.4 else 1 for n, e in extents.items()}
    return extents


def _results(p: Program) -> list[Value]:
    """Choose results: mostly what was made last; arguments and repetitions as well."""
    made = [value for value in p.values if value not in p.arguments] or p.values
    results = [made[-1]]
    while p.random.random() < 0.25:
        results.append(p.random.choice(made))
    if p.random.random() < 0.1:
        results.append(p.random.choice(p.arguments))
    return results
