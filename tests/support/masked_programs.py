"""Programs whose masks hide positions from some rows, as text."""

import re

from semantics import parse_module, run_passes


def causal(queries: int, keys: int) -> str:
    """Return causal attention of two heads."""
    q, k = (f"tensor<1x2x{count}x16xf16>" for count in (queries, keys))
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = compound.attention %q, %k, %v causal : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}"""


def decode(keys: int) -> str:
    """Return flash decode of sequences of several lengths."""
    q, k = "tensor<3x2x3x16xf16>", f"tensor<3x2x{keys}x16xf16>"
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}, %lens: tensor<3xi32>) -> {q} {{
      %o = compound.flash_decode %q, %k, %v, %lens
        : ({q}, {k}, {k}, tensor<3xi32>) -> {q}
      func.return %o : {q}
    }}"""


def with_constant(name: str, number: float) -> str:
    """Return attention in elementary ops with another number for one of its fills."""
    module = run_passes(parse_module(causal(256, 256)), "decompose{accumulator=f32}")
    fill = re.compile(rf"(%{name} = compound.fill) \S+")
    text, count = fill.subn(rf"\1 {number:e}", str(module))
    assert count
    return text


def with_term(low: float) -> str:
    """Return causal attention of one head whose mask is a term of the scores."""
    return f"""
    !x = tensor<64x16xf32, #compound.dims<M, D>>
    !k = tensor<64x16xf32, #compound.dims<N, D>>
    !s = tensor<64x64xf32, #compound.dims<M, N>>
    !m = tensor<64xf32, #compound.dims<M>>
    !n = tensor<64xf32, #compound.dims<N>>
    !one = tensor<f32, #compound.dims<>>
    func.func @main(%q: !x, %k: !k, %v: !k) -> !x {{
      %scores = compound.contract %q, %k : !x, !k -> !s
      %at = compound.index : !m
      %key = compound.index : !n
      %far = compound.map sub %at, %key : !m, !n -> !s
      %zero = compound.fill 0.0 : !one
      %below = compound.map min %far, %zero : !s, !one -> !s
      %minus = compound.fill -1.0 : !one
      %hidden = compound.map max %below, %minus : !s, !one -> !s
      %low = compound.fill {low:e} : !one
      %mask = compound.map mult %hidden, %low : !s, !one -> !s
      %masked = compound.map add %scores, %mask : !s, !s -> !s
      %top = compound.reduce max %masked : !s -> !m
      %below_top = compound.map sub %masked, %top : !s, !m -> !s
      %e = compound.map exp %below_top : !s -> !s
      %l = compound.reduce add %e : !s -> !m
      %p = compound.map div %e, %l : !s, !m -> !s
      %o = compound.contract %p, %v : !s, !k -> !x
      func.return %o : !x
    }}"""


def window(count: int, width: int) -> str:
    """Return attention of one head in which a query sees `width` keys up to its own."""
    return f"""
    !x = tensor<{count}x16xf16, #compound.dims<M, D>>
    !k = tensor<{count}x16xf16, #compound.dims<N, D>>
    !s = tensor<{count}x{count}xf32, #compound.dims<M, N>>
    !p = tensor<{count}x{count}xf16, #compound.dims<M, N>>
    !b = tensor<{count}x{count}xi1, #compound.dims<M, N>>
    !m = tensor<{count}xi32, #compound.dims<M>>
    !n = tensor<{count}xi32, #compound.dims<N>>
    !row = tensor<{count}xf32, #compound.dims<M>>
    !o = tensor<{count}x16xf32, #compound.dims<M, D>>
    func.func @main(%q: !x, %k: !k, %v: !k) -> !o {{
      %scores = compound.contract %q, %k : !x, !k -> !s
      %at = compound.index : !m
      %key = compound.index : !n
      %width = compound.fill {width} : tensor<i32, #compound.dims<>>
      %before = compound.map sub %at, %width : !m, tensor<i32, #compound.dims<>> -> !m
      %past = compound.map ge %at, %key : !m, !n -> !b
      %near = compound.map gt %key, %before : !n, !m -> !b
      %low = compound.fill -1.0e+38 : tensor<f32, #compound.dims<>>
      %causal = compound.map select %past, %scores, %low
        : !b, !s, tensor<f32, #compound.dims<>> -> !s
      %masked = compound.map select %near, %causal, %low
        : !b, !s, tensor<f32, #compound.dims<>> -> !s
      %top = compound.reduce max %masked : !s -> !row
      %below_top = compound.map sub %masked, %top : !s, !row -> !s
      %e = compound.map exp %below_top : !s -> !s
      %l = compound.reduce add %e : !s -> !row
      %p = compound.map div %e, %l : !s, !row -> !s
      %p16 = compound.cast %p : !s -> !p
      %o = compound.contract %p16, %v : !p, !k -> !o
      func.return %o : !o
    }}"""


def first_rows_see_nothing() -> str:
    """Return attention in elementary ops whose mask hides all keys of three queries."""
    return with_constant("more", -3.0)
