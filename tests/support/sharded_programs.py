"""Elementary programs whose arguments and results ranks share, for shardings."""

from collections.abc import Callable, Mapping

from graph_text import Program
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.collective import CollectiveOp

Sizes = Mapping[str, int]
Sharded = Mapping[str, str]
"""The dimension that ranks share of each argument and result."""
Write = Callable[[Sizes, Sharded], str]

SIZES = (
    {"T": 7, "D": 5, "F": 13},
    {"T": 1, "D": 3, "F": 2},
    {"T": 28, "D": 16, "F": 32},
)


def mlp(sizes: Sizes, sharded: Sharded) -> str:
    """Return a residual MLP with a norm by the maximum of rows, and a bias."""
    p = Program(sizes, sharded=sharded)
    x = p.argument("x", "TD")
    h = p.map("h", "sub", x, p.reduce("top", "max", x, "D"))
    up = p.contract("up", h, p.argument("w1", "DF"), "TF")
    biased = p.map("biased", "add", up, p.argument("b", "F"))
    a = p.map("a", "tanh", biased)
    d = p.contract("d", a, p.argument("w2", "FD"), "TD")
    return p.returning(p.map("z", "add", x, d))


def parallel(sizes: Sizes, sharded: Sharded) -> str:
    """Return two MLPs of one input, with one residual."""
    p = Program(sizes, sharded=sharded)
    x = p.argument("x", "TD")
    z = x
    for branch in ("p", "q"):
        up = p.contract(f"up{branch}", x, p.argument(f"u{branch}", "DF"), "TF")
        a = p.map(f"a{branch}", "tanh", up)
        d = p.contract(f"d{branch}", a, p.argument(f"d{branch}_w", "FD"), "TD")
        z = p.map(f"z{branch}", "add", z, d)
    return p.returning(z)


def gradient(sizes: Sizes, sharded: Sharded) -> str:
    """Return the gradient of a weight: a sum over tokens."""
    p = Program(sizes, sharded=sharded)
    x, d = p.argument("x", "TD"), p.argument("d", "TF")
    return p.returning(p.contract("z", x, d, "DF"))


def normed(sizes: Sizes, sharded: Sharded) -> str:
    """Return a softmax of a product."""
    p = Program(sizes, sharded=sharded)
    c = p.contract("c", p.argument("x", "TD"), p.argument("w", "DF"), "TF")
    e = p.map("e", "exp", p.map("s", "sub", c, p.reduce("m", "max", c, "F")))
    return p.returning(p.map("z", "div", e, p.reduce("l", "add", e, "F")))


SPLIT_WEIGHTS = {"w1": "F", "w2": "F", "b": "F"}
BRANCHES = {"up": "F", "uq": "F", "dp_w": "F", "dq_w": "F"}
MOVES: dict[str, tuple[Write, Sharded, list[str]]] = {
    "tokens and columns": (
        mlp,
        {"x": "T", "z": "T"} | SPLIT_WEIGHTS,
        ["all_gather", "reduce_scatter"],
    ),
    "tokens alone": (mlp, {"x": "T", "z": "T"}, []),
    "the result alone": (mlp, {"z": "T"}, []),
    "two branches": (
        parallel,
        {"x": "T", "zq": "T"} | BRANCHES,
        ["all_gather", "reduce_scatter", "reduce_scatter"],
    ),
    "a gradient": (gradient, {"x": "T", "d": "T", "z": "F"}, ["reduce_scatter"]),
    "columns of a softmax": (normed, {"w": "F", "z": "F"}, ["all_reduce"] * 2),
    "rows to columns": (normed, {"x": "T", "z": "F"}, ["all_to_all"]),
}
"""A program, what its ranks share, and the collectives that this needs."""


def collectives(module: ModuleOp) -> list[str]:
    """Return the names of all collectives, in order."""
    found = (op for op in module.walk() if isinstance(op, CollectiveOp))
    return [op.name.removeprefix("collective.") for op in found]
