"""Blocks of transformers in elementary form: graphs of many norms and products."""

from collections.abc import Mapping

from graph_text import Program

SIZES: Mapping[str, int] = {"M": 3, "N": 3, "D": 4, "H": 2, "E": 3, "G": 3, "F": 6}
"""Tokens as queries and as keys, model, heads, a head's keys and values, the MLP."""


def rms_norm(p: Program, x: str, to: str) -> str:
    """Divide by the root of the mean square over D, and scale by a weight."""
    weight = p.argument(f"{to}_g", "D")
    square = p.map(f"{to}_sq", "mult", x, x)
    total = p.reduce(f"{to}_sum", "add", square, "D")
    mean = p.map(f"{to}_mean", "mult", total, p.fill(f"{to}_n", 1 / p.size("D")))
    safe = p.map(f"{to}_safe", "add", mean, p.fill(f"{to}_eps", 1e-5))
    scale = p.map(f"{to}_scale", "rsqrt", safe)
    scaled = p.map(f"{to}_scaled", "mult", x, scale)
    return p.map(to, "mult", scaled, weight)


def layer_norm(p: Program, x: str, to: str) -> str:
    """Subtract the mean over D, divide by the deviation; scale and shift."""
    weight, bias = p.argument(f"{to}_g", "D"), p.argument(f"{to}_b", "D")
    share = p.fill(f"{to}_n", 1 / p.size("D"))
    total = p.reduce(f"{to}_sum", "add", x, "D")
    mean = p.map(f"{to}_mean", "mult", total, share)
    centred = p.map(f"{to}_c", "sub", x, mean)
    square = p.map(f"{to}_sq", "mult", centred, centred)
    squares = p.reduce(f"{to}_sqsum", "add", square, "D")
    variance = p.map(f"{to}_var", "mult", squares, share)
    safe = p.map(f"{to}_safe", "add", variance, p.fill(f"{to}_eps", 1e-5))
    scaled = p.map(f"{to}_scaled", "mult", centred, p.map(f"{to}_r", "rsqrt", safe))
    return p.map(to, "add", p.map(f"{to}_w", "mult", scaled, weight), bias)


def softmax(p: Program, scores: str, to: str, dim: str = "N") -> str:
    """Normalize over a dimension: that of the keys."""
    below = p.map(f"{to}_s", "sub", scores, p.reduce(f"{to}_m", "max", scores, dim))
    terms = p.map(f"{to}_e", "exp", below)
    return p.map(to, "div", terms, p.reduce(f"{to}_l", "add", terms, dim))


def attention(p: Program, h: str, to: str) -> str:
    """Return the attention of all heads to a sequence<M, D>, and the output product."""
    wq, wk = p.argument("wq", "DHE"), p.argument("wk", "DHE")
    wv, wo = p.argument("wv", "DHG"), p.argument("wo", "HGD")
    keys = p.rename("keys", h, "ND")
    q, k = p.contract("q", h, wq, "HME"), p.contract("k", keys, wk, "HNE")
    v = p.contract("v", keys, wv, "HNG")
    scores = p.contract("scores", q, k, "HMN")
    mixed = p.contract("mixed", softmax(p, scores, "weights"), v, "HMG")
    return p.contract(to, mixed, wo, "MD")


def swiglu(p: Program, h: str, to: str) -> str:
    """Return silu(h w1) (h w3), times w2."""
    w1, w3 = p.argument("w1", "DF"), p.argument("w3", "DF")
    w2 = p.argument("w2", "FD")
    gate, up = p.contract("gate", h, w1, "MF"), p.contract("up", h, w3, "MF")
    one = p.fill("one", 1.0)
    below = p.map("below", "exp", p.map("minus", "neg", gate))
    silu = p.map("silu", "div", gate, p.map("bottom", "add", below, one))
    return p.contract(to, p.map("gated", "mult", silu, up), w2, "MD")


def gelu_mlp(p: Program, h: str, to: str) -> str:
    """Return gelu(h w1) w2."""
    w1, w2 = p.argument("w1", "DF"), p.argument("w2", "FD")
    wide = p.contract("wide", h, w1, "MF")
    part = p.map("part", "mult", wide, p.fill("root", 0.7071067811865476))
    both = p.map("both", "add", p.map("erf", "erf", part), p.fill("one", 1.0))
    twice = p.map("twice", "mult", wide, both)
    return p.contract(to, p.map("gelu", "mult", twice, p.fill("half", 0.5)), w2, "MD")


def llama_block(sizes: Mapping[str, int] = SIZES, element: str = "f32") -> str:
    """RMSNorm, attention, residual, RMSNorm, SwiGLU, residual."""
    p = Program(sizes, element)
    x = p.argument("x", "MD")
    y = p.map("y", "add", x, attention(p, rms_norm(p, x, "h1"), "a"))
    z = p.map("z", "add", y, swiglu(p, rms_norm(p, y, "h2"), "d"))
    return p.returning(z)


def gpt2_block(sizes: Mapping[str, int] = SIZES, element: str = "f32") -> str:
    """LayerNorm, attention, residual, LayerNorm, GELU MLP, residual."""
    p = Program(sizes, element)
    x = p.argument("x", "MD")
    y = p.map("y", "add", x, attention(p, layer_norm(p, x, "h1"), "a"))
    z = p.map("z", "add", y, gelu_mlp(p, layer_norm(p, y, "h2"), "d"))
    return p.returning(z)


def two_norms(norm: str) -> str:
    """Two norms of one kind, one after another: rms, layer or softmax."""
    p = Program(SIZES)
    if norm == "softmax":
        x = p.argument("x", "MN")
        return p.returning(softmax(p, softmax(p, x, "p"), "q"))
    made = {"rms": rms_norm, "layer": layer_norm}[norm]
    return p.returning(made(p, made(p, p.argument("x", "MD"), "h1"), "h2"))


def norm_and_mlp(sizes: Mapping[str, int] = SIZES, element: str = "f32") -> str:
    """RMSNorm and SwiGLU with a residual: half a block."""
    p = Program(sizes, element)
    x = p.argument("x", "MD")
    return p.returning(p.map("z", "add", x, swiglu(p, rms_norm(p, x, "h"), "d")))


WIDE = {"M": 128, "N": 128, "D": 1024, "H": 8, "E": 128, "G": 128, "F": 2816}
"""The sizes of a block that several kernels are fastest for."""

GRAPHS: Mapping[str, str] = {
    "two_rms_norms": two_norms("rms"),
    "two_layer_norms": two_norms("layer"),
    "two_softmaxes": two_norms("softmax"),
    "llama_block": llama_block(),
    "gpt2_block": gpt2_block(),
}
"""All of them at the sizes of `SIZES`."""
