"""
Writes `samples/blocks`: blocks of transformers in elementary form.

    python tests/support/sample_blocks.py               # the tiny ones, to their files
    python tests/support/sample_blocks.py llama         # at its published width
    python tests/support/sample_blocks.py llama M=2048 N=2048   # with other extents

A block of tokens has them under two names: M as queries, N as keys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import pi, sqrt
from typing import TypeAlias

from graph_gradient import backward
from graph_text import Program
from paths import ROOT
from transformer_blocks import layer_norm, rms_norm, softmax

FOLDER = ROOT / "samples" / "blocks"

Sizes: TypeAlias = Mapping[str, int]
Write: TypeAlias = Callable[[Program], str]
"""Writes a block, and returns the name of its result."""


@dataclass(frozen=True)
class Block:
    """One sample: what it is, and how it is written."""

    about: str
    write: Write
    tiny: Sizes
    wide: Sizes
    constant: tuple[str, ...] = ()
    """Arguments that have no gradient."""
    saved: tuple[str, ...] = ()
    """What a forward pass keeps for the backward pass; with none there is no such."""
    sharded: Mapping[str, str] = field(default_factory=dict[str, str])
    """The dimension that ranks share, of arguments and results."""
    further: tuple[str, ...] = ()
    """What is returned besides the result."""

    def text(self, name: str, sizes: Sizes, element: str = "f32") -> str:
        """Return the module."""
        p = Program(sizes, element, "f32", self.sharded)
        return p.returning(self.write(p), *self.further, function=name)

    def saving_text(self, name: str) -> str:
        """Return the tiny module, with what it saves as results."""
        p = Program(self.tiny)
        self.write(p)
        return p.returning(*self.saved, function=name)

    def backward_text(self, name: str, sizes: Sizes, element: str = "f32") -> str:
        """Return the module that computes the gradients of all other arguments."""
        p = Program(sizes, element, "f32")
        result = self.write(p)
        wrt = [value for value in p.arguments if value not in self.constant]
        program, gradients = backward(p, result, self.saved, wrt)
        return program.returning(*gradients, function=name)


def linear(p: Program, to: str, x: str, weight: str, dims: str) -> str:
    """Multiply by a weight `weight`<..>, named by its dimensions, and add a bias."""
    inner = [dim for dim in weight if dim not in dims]
    outer = [dim for dim in weight if dim in dims]
    product = p.contract(f"{to}_p", x, p.argument(f"w_{to}", inner + outer), dims)
    return p.map(to, "add", product, p.argument(f"b_{to}", outer))


def causal(p: Program, scores: str, to: str) -> str:
    """Hide keys behind the query: their scores become a number below all others."""
    seen = p.map(f"{to}_seen", "ge", p.index("at_m", "M"), p.index("at_n", "N"))
    return p.map(to, "select", seen, scores, p.fill(f"{to}_low", -1.7e38))


def rotated(p: Program, to: str, x: str, weights: tuple[str, str]) -> list[str]:
    """
    Project to the two halves of every head, and turn them by the angles of positions.

    The two weights are the halves of one, along the last dimension. Tokens are the
    first dimension of `x`.
    """
    dims = [dim for dim in p.dims(weights[0]) if dim not in "DE"]
    first, second = (
        p.contract(f"{to}{half}_p", x, weight, (*dims, p.dims(x)[0], "E"))
        for half, weight in zip("12", weights, strict=True)
    )
    return [
        p.map(
            f"{to}{half}",
            kind,
            p.map(f"{to}{half}_cos", "mult", mine, "cos"),
            p.map(f"{to}{half}_sin", "mult", other, "sin"),
        )
        for half, kind, mine, other in (
            ("1", "sub", first, second),
            ("2", "add", second, first),
        )
    ]


def grouped_attention(p: Program, h: str, to: str) -> str:
    """
    Attention with a causal mask, rotary positions, and R query heads for each of K.

    A head has two halves of E numbers, and values of G.
    """
    p.argument("cos", "ME")
    p.argument("sin", "ME")
    wq = p.argument("wq1", "DKRE"), p.argument("wq2", "DKRE")
    wk = p.argument("wk1", "DKE"), p.argument("wk2", "DKE")
    q, k = rotated(p, "q", h, wq), rotated(p, "k", h, wk)
    v = p.rename("values", p.contract("v", h, p.argument("wv", "DKG"), "KMG"), "KNG")
    halves = (
        p.contract(f"scores{i}", query, p.rename(f"keys{i}", key, "KNE"), "KRMN")
        for i, (query, key) in enumerate(zip(q, k, strict=True), 1)
    )
    scores = p.map("scores", "add", *halves)
    scaled = p.map("scaled", "mult", scores, p.fill("by", 1 / sqrt(2 * p.size("E"))))
    weights = softmax(p, causal(p, scaled, "masked"), "weights")
    mixed = p.contract("mixed", weights, v, "KRMG")
    return p.contract(to, mixed, p.argument("wo", "KRGD"), "MD")


def cached_attention(p: Program, h: str, to: str) -> str:
    """
    Attention of one token of each of B sequences to N cached keys and its own.

    The caches have no room for the token's own key and value: its score joins the
    maximum and the sum of the others.
    """
    p.argument("cos", "BE")
    p.argument("sin", "BE")
    wq = p.argument("wq1", "DKRE"), p.argument("wq2", "DKRE")
    wk = p.argument("wk1", "DKE"), p.argument("wk2", "DKE")
    q, k = rotated(p, "q", h, wq), rotated(p, "k", h, wk)
    v = p.contract("v", h, p.argument("wv", "DKG"), "KBG")
    caches = p.argument("keys1", "BKNE"), p.argument("keys2", "BKNE")
    by = p.fill("by", 1 / sqrt(2 * p.size("E")))
    scores = score(p, "scores", zip(q, caches, strict=True), "BKRN", by)
    own = score(p, "own", zip(q, k, strict=True), "BKR", by)
    largest = p.map("largest", "max", p.reduce("cached_m", "max", scores, "N"), own)
    weights = p.map("terms", "exp", p.map("below", "sub", scores, largest))
    weight = p.map("own_term", "exp", p.map("own_below", "sub", own, largest))
    total = p.map("l", "add", p.reduce("cached_l", "add", weights, "N"), weight)
    cached = p.contract("cached", weights, p.argument("values", "BKNG"), "BKRG")
    mine = p.map("mine", "mult", weight, v)
    mixed = p.map("mixed", "div", p.map("both", "add", cached, mine), total)
    return p.contract(to, mixed, p.argument("wo", "KRGD"), "BD")


def score(
    p: Program, to: str, halves: Iterable[tuple[str, str]], dims: str, by: str
) -> str:
    """Multiply queries by keys, both given as halves, and scale by `by`."""
    products = [
        p.contract(f"{to}{i}", query, key, dims)
        for i, (query, key) in enumerate(halves, 1)
    ]
    return p.map(f"{to}_scaled", "mult", p.map(to, "add", *products), by)


def gated(p: Program, h: str, to: str, group: str = "") -> str:
    """Return (silu(h w1) * (h w3)) w2; the weights of each `group` are its own."""
    token = next(dim for dim in p.dims(h) if dim not in {"D", *group})
    w1, w3 = p.argument("w1", group + "DF"), p.argument("w3", group + "DF")
    gate = p.contract("gate", h, w1, group + token + "F")
    up = p.contract("up", h, w3, group + token + "F")
    below = p.map(
        "bottom", "add", p.map("e", "exp", p.map("minus", "neg", gate)), one(p)
    )
    wide = p.map("gated", "mult", p.map("silu", "div", gate, below), up)
    return p.contract(to, wide, p.argument("w2", group + "FD"), group + token + "D")


def one(p: Program) -> str:
    """Add the number 1."""
    return p.fill("one", 1.0)


def llama(p: Program) -> str:
    """RMSNorm, grouped attention, RMSNorm, gated MLP; two residuals."""
    x = p.argument("x", "MD")
    y = p.map("y", "add", x, grouped_attention(p, rms_norm(p, x, "h1"), "a"))
    return p.map("z", "add", y, gated(p, rms_norm(p, y, "h2"), "d"))


def llama_decode(p: Program) -> str:
    """The same block for one token of each of B sequences."""
    x = p.argument("x", "BD")
    y = p.map("y", "add", x, cached_attention(p, rms_norm(p, x, "h1"), "a"))
    return p.map("z", "add", y, gated(p, rms_norm(p, y, "h2"), "d"))


def attention(p: Program, h: str, to: str, mask: bool) -> str:
    """Attention of H heads with biases."""
    keys = p.rename("keys", h, "ND")
    q = linear(p, "q", h, "DHE", "HME")
    k = linear(p, "k", keys, "DHE", "HNE")
    v = linear(p, "v", keys, "DHG", "HNG")
    scores = p.contract("scores", q, k, "HMN")
    scaled = p.map("scaled", "mult", scores, p.fill("by", 1 / sqrt(p.size("E"))))
    seen = causal(p, scaled, "masked") if mask else scaled
    mixed = p.contract("mixed", softmax(p, seen, "weights"), v, "HMG")
    return linear(p, to, mixed, "HGD", "MD")


def gelu_tanh(p: Program, x: str, to: str) -> str:
    """The approximation of GPT-2: half of x (1 + tanh(c (x + 0.044715 x^3)))."""
    cube = p.map("cube", "mult", p.map("square", "mult", x, x), x)
    more = p.map("more", "mult", cube, p.fill("cubes", 0.044715))
    bent = p.map("bent", "add", x, more)
    angle = p.map("angle", "mult", bent, p.fill("root", sqrt(2 / pi)))
    both = p.map("both", "add", p.map("tanh", "tanh", angle), one(p))
    half = p.map("half", "mult", x, p.fill("of", 0.5))
    return p.map(to, "mult", half, both)


def gelu_erf(p: Program, x: str, to: str) -> str:
    """Half of x (1 + erf(x / sqrt(2)))."""
    part = p.map("part", "mult", x, p.fill("root", sqrt(0.5)))
    both = p.map("both", "add", p.map("erf", "erf", part), one(p))
    half = p.map("half", "mult", x, p.fill("of", 0.5))
    return p.map(to, "mult", half, both)


def gpt2(p: Program) -> str:
    """LayerNorm, causal attention, LayerNorm, MLP with GELU; two residuals."""
    return normed_block(p, gelu_tanh, mask=True)


def vit(p: Program) -> str:
    """The same without a mask and with the exact GELU: all patches see all others."""
    return normed_block(p, gelu_erf, mask=False)


def normed_block(
    p: Program, gelu: Callable[[Program, str, str], str], mask: bool
) -> str:
    x = p.argument("x", "MD")
    y = p.map("y", "add", x, attention(p, layer_norm(p, x, "h1"), "a", mask))
    wide = linear(p, "wide", layer_norm(p, y, "h2"), "DF", "MF")
    return p.map("z", "add", y, linear(p, "d", gelu(p, wide, "gelu"), "FD", "MD"))


def experts(p: Program) -> str:
    """
    A layer of X experts, each with C slots for the tokens that a router sends to it.

    `sent`<T, X, C> is 1 where a token is in a slot, and 0 elsewhere.
    """
    x, sent = p.argument("x", "TD"), p.argument("sent", "TXC")
    logits = p.contract("logits", x, p.argument("wr", "DX"), "TX")
    shares = softmax(p, logits, "shares", "X")
    slots = p.contract("slots", sent, x, "XCD")
    made = gated(p, slots, "made", "X")
    back = p.map("back", "mult", sent, shares)
    return p.map("y", "add", x, p.contract("mixed", back, made, "TD"))


def parallel_mlp(p: Program) -> str:
    """RMSNorm on the tokens of a rank, the MLP on its columns; one residual."""
    x = p.argument("x", "MD")
    return p.map("z", "add", x, gated(p, rms_norm(p, x, "h"), "d"))


ROWS = ("weights_m", "weights_l")
"""The maximum and the sum of each row of attention."""

LLAMA = Block(
    "A block of Llama: RMSNorm, rotary positions, grouped queries, a mask, SwiGLU.",
    llama,
    {"M": 5, "N": 5, "D": 8, "K": 2, "R": 2, "E": 2, "G": 4, "F": 12},
    {"M": 128, "N": 128, "D": 4096, "K": 8, "R": 4, "E": 64, "G": 128, "F": 14336},
    constant=("cos", "sin"),
    saved=("q1", "q2", "k1", "k2", "v", *ROWS, "mixed", "y", "gate", "up"),
)
GPT2 = Block(
    "A block of GPT-2: LayerNorm, causal attention, GELU by tanh, biases.",
    gpt2,
    {"M": 5, "N": 5, "D": 8, "H": 2, "E": 4, "G": 4, "F": 12},
    {"M": 128, "N": 128, "D": 1600, "H": 25, "E": 64, "G": 64, "F": 6400},
    saved=("q", "k", "v", *ROWS, "mixed", "y", "wide"),
)
BLOCKS: Mapping[str, Block] = {
    "llama": LLAMA,
    "llama_decode": Block(
        "A block of Llama that decodes: a token of each sequence sees cached keys.",
        llama_decode,
        {"B": 2, "N": 5, "D": 8, "K": 2, "R": 2, "E": 2, "G": 4, "F": 12},
        {"B": 1, "N": 2048, "D": 4096, "K": 8, "R": 4, "E": 64, "G": 128, "F": 14336},
        further=("k1", "k2", "v"),
    ),
    "gpt2": GPT2,
    "vit": Block(
        "A block of ViT-B/16: LayerNorm, attention of all patches, GELU, biases.",
        vit,
        {"M": 5, "N": 5, "D": 8, "H": 2, "E": 4, "G": 4, "F": 12},
        {"M": 197, "N": 197, "D": 768, "H": 12, "E": 64, "G": 64, "F": 3072},
    ),
    "experts": Block(
        "A mixture of experts with slots, of the widths of Mixtral 8x7B.",
        experts,
        {"T": 6, "D": 8, "X": 4, "C": 3, "F": 12},
        {"T": 128, "D": 4096, "X": 8, "C": 32, "F": 14336},
    ),
    "parallel_mlp": Block(
        "A gated MLP on 4 ranks: tokens are shared in the norm, columns in the MLP.",
        parallel_mlp,
        {"M": 8, "D": 8, "F": 16},
        {"M": 128, "D": 4096, "F": 14336},
        sharded={"x": "M", "w1": "F", "w3": "F", "w2": "F", "z": "M"},
    ),
}
"""All blocks; the widths are those of Llama-3 8B, GPT-2 XL, ViT-B/16, Mixtral 8x7B."""


def tiny_texts() -> Mapping[str, str]:
    """Return the samples by the names of their files."""
    texts = {
        name: f"// {block.about}\n\n{block.text(name, block.tiny)}\n"
        for name, block in BLOCKS.items()
    }
    for name, block in BLOCKS.items():
        if block.saved:
            text = block.backward_text(f"{name}_backward", block.tiny)
            about = f"// The gradients of {name}.mlir, from what it saves."
            texts[f"{name}_backward"] = f"{about}\n\n{text}\n"
    return texts


def main(arguments: list[str]) -> None:
    """Write the tiny blocks to their files, or print one with other extents."""
    if not arguments:
        FOLDER.mkdir(exist_ok=True)
        for name, text in tiny_texts().items():
            (FOLDER / f"{name}.mlir").write_text(text)
        return
    name, *sizes = arguments
    block = BLOCKS[name.removesuffix("_backward")]
    given = {dim: int(size) for dim, size in (text.split("=") for text in sizes)}
    write = block.backward_text if name.endswith("_backward") else block.text
    print(write(name, {**block.wide, **given}, "bf16"))


if __name__ == "__main__":
    main(sys.argv[1:])
