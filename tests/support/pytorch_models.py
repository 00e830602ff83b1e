"""
Compiles models by `torch.compile(backend="comet")`, and trains them a step: a script.

It prints, in JSON, the largest error of results and gradients of each model, the
warnings, what mistakes are answered with, and what the blocks of code in a file print;
and, as importing what they need takes longer, the outcomes of `pytorch_cases`.
The arguments are this file, 1 for large models or 0, and how many random functions.
"""

# pyright: basic
from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

import torch
from pytorch_cases import all_outcomes
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import one_hot, scaled_dot_product_attention

import comet
from comet.pytorch import backend, program_cache
from comet.pytorch.backend import SlowPathWarning, comet_backend
from comet.pytorch.torch_ops import attention_of_torch, whole_attention

FILE = "samples/hardware/h200x1.yaml"
HARDWARE: dict[str, str | int | bool | Callable[..., object]] = {"hardware": FILE}


class Mixed(nn.Module):
    """Two products with an op between them that only torch has, also on constants."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(8, 16)
        self.other = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + torch.ones(8).sinh()
        return self.other(torch.softmax(self.one(x), -1).sinh())


class Convolved(nn.Module):
    """Patches, a convolution with a stride, and sums of each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 2, 2)
        self.strided = nn.Conv1d(6, 8, 3, 2, 1)
        self.each = nn.Conv1d(8, 8, 4, padding=3, groups=8)

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.gelu(self.patches(x).flatten(2))
        return self.each(self.strided(y))[..., :-3]


class Block(nn.Module):
    """A transformer block, with grouped heads."""

    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2):
        super().__init__()
        self.heads, self.each, self.groups = heads, width // heads, groups
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, groups * self.each)
        self.value = nn.Linear(width, groups * self.each)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        query, key, value = (
            part(y).unflatten(-1, (-1, self.each)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        seen = scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.silu(self.up(self.second(x))))


LAYERS = nn.Sequential(Block(), Block(), Block())


def step(model: nn.Module, run: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    """Return the result, and the gradients of the parameters."""
    model.zero_grad(set_to_none=True)
    y = run(x)
    y.square().sum().backward()
    return [y, *(p.grad for p in model.parameters() if p.grad is not None)]


def error(model: nn.Module, x: Tensor) -> float:
    """
    Return the largest error, as a fraction of the largest magnitude of all.

    The gradients of some biases are 0, as that of keys.
    """
    compiled = torch.compile(model, backend="comet", options=HARDWARE, dynamic=False)
    found, expected = step(model, compiled, x), step(model, model, x)
    largest = max(each.abs().max().item() for each in expected)
    pairs = zip(found, expected, strict=True)
    return max((a - b).abs().max().item() for a, b in pairs) / largest


def convolved() -> float:
    """Return the largest error of convolutions that are wholly in kernels."""
    model, x = Convolved(), torch.randn(2, 3, 8, 4)
    options = HARDWARE | {"strict": True}
    run = torch.compile(model, backend="comet", options=options, dynamic=False)
    with torch.no_grad():
        return (run(x) - model(x)).abs().max().item()


def limited(x: Tensor) -> Tensor:
    """Return a sum of maxima and minima with numbers."""
    return x.relu() + x.clamp(-1, 1)


def keeps_nan() -> bool:
    """Return whether maxima and minima of NaN are NaN, as those of torch."""
    compiled = torch.compile(limited, backend="comet", options=HARDWARE, dynamic=False)
    x = torch.tensor([2.0, float("nan"), float("inf"), -0.5])
    return torch.equal(compiled(x).isnan(), x.isnan())


def infinite() -> bool:
    """Return whether a kernel has the logarithm of 0 without a warning."""
    compiled = torch.compile(torch.log, backend="comet", options=HARDWARE)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        return torch.equal(compiled(torch.zeros(3)), torch.zeros(3).log())


def widened(x: Tensor) -> Tensor:
    """Return twice a tensor, in f32; `torch.export` adds an assertion to the cast."""
    return x.float() * 2


def in_halves(x: Tensor) -> tuple[Tensor, ...]:
    """Return what is rounded once: what lies between is computed in f32."""
    return x.var(-1), x.sigmoid(), x**3, x.tan()


def inverted() -> bool:
    """Whether inverses are as torch's, which checks them by an op with an effect."""
    x = torch.randn(4, 4)
    compiled = torch.compile(torch.linalg.inv, backend="comet", options=HARDWARE)
    with warnings.catch_warnings(action="ignore", category=SlowPathWarning):
        return torch.equal(compiled(x), torch.linalg.inv(x))


def cached() -> dict[str, object]:
    """Return how often a program was compiled after each use of it, and mistakes."""
    program, x = str(comet.from_torch(doubled, torch.ones(3))), torch.ones(3)
    with (
        TemporaryDirectory() as name,
        patch.object(program_cache, "compile", wraps=comet.compile) as compiling,
    ):
        other, folder = Path(name, "other.yaml"), Path(name, "a", "b")
        other.write_text(Path(FILE).read_text() + "# another machine\n")
        counts: list[int] = []
        for file in (FILE, FILE, str(other)):
            program_cache.emitted(program, file, "triton-distributed", str(folder))
            counts.append(compiling.call_count)
        options = HARDWARE | {"cache": str(folder)}
        run = torch.compile(doubled, backend="comet", options=options, dynamic=False)
        right = torch.equal(run(x), x + x)
        kept = len(list(folder.glob("*.py")))
    unread = partial(program_cache.emitted, program, "no/h200.yaml", "", name)
    return {"counts": counts, "right": right, "kept": kept, "error": mistake(unread)}


def turned(x: Tensor) -> Tensor:
    """Return halves of rows as rotary embeddings turn them."""
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def shared_part(x: Tensor, shared: Tensor) -> Tensor:
    """Return rows with a part that is the same for all, as latent attention has."""
    return torch.cat([x, shared.expand(*x.shape[:-1], -1)], -1) * 2


def offset(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of a sequence that follows none, and rows there."""
    positions = torch.arange(x.shape[0]) + 0
    return positions, x * (positions > 1)[:, None]


def counted(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return the experts of tokens, which torch checks, and how many each one has."""
    ones = torch.ones_like(ids)
    return one_hot(ids, 4), torch.zeros_like(ids).scatter_add(0, ids, ones)


def turned_as_complex(x: Tensor, table: Tensor, ids: Tensor) -> Tensor:
    """Return pairs turned by angles of positions, by a product of complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    angles = table[ids].unsqueeze(1)
    turned = pairs * torch.polar(torch.ones_like(angles.real), angles.real)
    return torch.view_as_real(turned * angles.conj() * 2j).flatten(-2)


def complex_error() -> float:
    """Return the error of complex numbers wholly in kernels."""
    options = HARDWARE | {"strict": True}
    run = torch.compile(
        turned_as_complex, backend="comet", options=options, dynamic=False
    )
    table = torch.polar(torch.rand(9, 4), torch.rand(9, 4))
    given = torch.randn(5, 3, 8), table, torch.tensor([2, 0, 8, 8, 4])
    return (run(*given) - turned_as_complex(*given)).abs().max().item()


def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return attention to twice the values."""
    return scaled_dot_product_attention(query, key, 2 * value)


def repeated(x: Tensor, counts: Tensor) -> Tensor:
    """Return powers of rows, each as often as a number says."""
    return 2 * x.repeat_interleave(counts, 0).exp()


def changing_shape() -> tuple[float, list[str]]:
    """Return the error of a function whose result has any length, and warnings."""
    run = torch.compile(repeated, backend="comet", options=HARDWARE, fullgraph=True)
    given = torch.randn(3, 4), torch.tensor([2, 0, 3])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", SlowPathWarning)
        found = run(*given)
    slow = {str(w.message) for w in said if w.category is SlowPathWarning}
    return (found - repeated(*given)).abs().max().item(), sorted(slow)


def attention_inside() -> bool:
    """Return whether attention is one op in a graph inside another, as checkpoints."""
    inner: fx.GraphModule = fx.symbolic_trace(attended)
    outer = fx.Graph()
    outer.output(outer.call_module("inner", tuple(map(outer.placeholder, "qkv"))))
    graph = fx.GraphModule({"inner": inner}, outer)
    with whole_attention(graph):
        targets = {node.target for node in inner.graph.nodes}
    return attention_of_torch in targets


def ordered(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is stored in one order, and a view by strides of another one."""
    twice = x * 2
    return twice, torch.as_strided(twice.t().contiguous(), (2, 2), (2, 1))


def copies(x: Tensor) -> tuple[Tensor, ...]:
    """Return copies of an argument, of a result, and of a row."""
    twice = x * 2
    return x.clone(), twice, twice.clone(), x.sum(0, keepdim=True).repeat(2, 1)


def memory() -> list[bool]:
    """Return whether views in torch, and changes of results in place, are right."""
    options = {"backend": "comet", "options": HARDWARE, "dynamic": False}
    with warnings.catch_warnings(action="ignore", category=SlowPathWarning):
        x = torch.randn(3, 2)
        found = torch.compile(ordered, **options)(x)
    x, given = torch.ones(2, 2), torch.ones(2, 2)
    changed = torch.compile(copies, **options)(x)
    for number, result in enumerate(changed):
        result += number + 1
    right = [2.0, 4.0, 5.0, 6.0]
    return [
        torch.equal(found[1], ordered(torch.clone(found[0] / 2))[1]),
        torch.equal(x, given),
        [result.unique().item() for result in changed] == right,
    ]


def equal(function: Callable[..., object], *given: Tensor) -> bool:
    """Return whether a function wholly in kernels computes exactly what torch does."""
    options = HARDWARE | {"strict": True}
    run = torch.compile(function, backend="comet", options=options, dynamic=False)
    pairs = zip(_tensors(run(*given)), _tensors(function(*given)), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def _tensors(result: object) -> tuple[Tensor, ...]:
    """Return the tensors that a function returns."""
    return (
        (result,) if isinstance(result, Tensor) else cast("tuple[Tensor, ...]", result)
    )


def autocast() -> tuple[str, float]:
    """Return the type of attention in mixed types by autocast, and its error."""
    query, key, value = torch.randn(3, 2, 7, 16)
    run = torch.compile(
        scaled_dot_product_attention, backend="comet", options=HARDWARE, dynamic=False
    )
    with torch.autocast("cpu", torch.bfloat16):
        found = run(query, key, value.bfloat16())
    exact = scaled_dot_product_attention(query, key, value)
    return str(found.dtype), (found - exact).abs().max().item()


def devices() -> list[str]:
    """Return where kernels find a tensor and a number of the host, and the result."""
    x, number = torch.ones(3, device="meta"), torch.tensor(2.0)
    graph = make_fx(scaled)(x, number)
    found: list[str] = []

    def launched(*arguments: Tensor) -> Tensor:
        found.extend(str(each.device) for each in arguments)
        return torch.empty_like(x)

    with patch.object(backend, "_loaded", return_value=launched):
        result = backend.with_kernels(graph, backend.Options(FILE))(x, number)
    return [*found, str(result.device)]


def scaled(x: Tensor, number: Tensor) -> Tensor:
    """Return a tensor times what the host computes."""
    return x * (number + 1)


def doubled(x: Tensor) -> Tensor:
    """Return twice a tensor."""
    return x + x


class Chosen(nn.Module):
    """Rows of a table, which accelerators cannot choose."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.ones(9, 4))

    def forward(self, ids: Tensor) -> Tensor:
        return self.table[ids].exp()


def of_export() -> list[str]:
    """Return the programs of a model, and of what `torch.export` has made of it."""
    model, x = nn.Linear(4, 3), torch.ones(2, 4)
    return [
        str(comet.from_torch(each, x))
        for each in (model, torch.export.export(model, (x,)))
    ]


def mistake(call: Callable[[], object]) -> str:
    """Return the sentence of the error that a call raises."""
    try:
        call()
    except Exception as error:  # Dynamo wraps it
        return str(error).splitlines()[-1 if isinstance(error, comet.CometError) else 1]
    return "no error"


def refused(options: Mapping[str, object], mode: str | None = None) -> str:
    """Return the sentence for wrong settings of `torch.compile`."""
    compiler = partial(comet_backend, mode=mode, options=options)
    compiled = torch.compile(Mixed(), backend=compiler, dynamic=False)
    text = mistake(partial(compiled, torch.randn(3, 8)))
    return text.partition("CometError: ")[2] or text


def decided(x: Tensor) -> Tensor:
    """Return what Python chooses by the value of a tensor."""
    return x if x.sum() > 0 else -x


def main() -> None:
    """Print all."""
    cases = all_outcomes(range(int(sys.argv[3])))
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    models: dict[str, tuple[nn.Module, Tensor]] = {
        "mixed": (Mixed(), torch.randn(5, 8))
    }
    if sys.argv[2] == "1":
        attention = nn.MultiheadAttention(16, 2, batch_first=True)
        models["block"] = Block(), torch.randn(2, 7, 32)
        models["convolved"] = Convolved(), torch.randn(2, 3, 8, 4)
        models["heads"] = Itself(attention), torch.randn(2, 5, 16)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        errors = {name: error(*model) for name, model in models.items()}
    slow = {str(w.message) for w in said if w.category.__name__ == "SlowPathWarning"}
    changing = nn.BatchNorm1d(3)
    found = {
        "cases": cases,
        "errors": errors,
        "convolved": convolved(),
        "keeps nan": keeps_nan(),
        "infinite": infinite(),
        "turned": str(comet.from_torch(turned, torch.ones(3, 8))),
        "copies": equal(shared_part, torch.randn(2, 3, 4), torch.randn(2, 1, 5)),
        "attention inside": attention_inside(),
        "changing shape": changing_shape(),
        "memory": memory(),
        "positions": equal(offset, torch.randn(4, 3)),
        "counts": equal(counted, torch.tensor([3, 1, 3, 0, 1])),
        "complex": complex_error(),
        "devices": devices(),
        "autocast": autocast(),
        "layers": str(comet.from_torch(LAYERS, torch.randn(2, 7, 32))),
        "widened": str(comet.from_torch(widened, torch.ones(3, dtype=torch.half))),
        "in halves": str(
            comet.from_torch(in_halves, torch.ones(3, 4, dtype=torch.half))
        ),
        "inverted": inverted(),
        "of export": of_export(),
        "located": mistake(
            partial(
                comet.compile,
                comet.from_torch(Chosen(), torch.tensor([1, 8])),
                "samples/hardware/edge.yaml",
            )
        ),
        "warnings": sorted(slow),
        "strict": refused(HARDWARE | {"strict": True}),
        "options": [
            refused({"hardwear": "h200x1.yaml"}),
            refused({}),
            refused({}, "max-autotune"),
        ],
        "cached": cached(),
        "exported": [
            mistake(partial(comet.from_torch, Mixed(), torch.randn(3, 8))),
            mistake(partial(comet.from_torch, changing, torch.randn(4, 3))),
            mistake(partial(comet.from_torch, cast(Any, 3), torch.randn(3))),
            mistake(partial(comet.from_torch, changing, cast(Any, "x"))),
            mistake(partial(comet.from_torch, changing)),
            mistake(partial(comet.from_torch, decided, torch.randn(3))),
            mistake(partial(comet.from_torch, torch.t, torch.randn(3, 4))),
            mistake(partial(comet.from_torch, torch.relu, torch.ones(3).double())),
            mistake(partial(comet.from_torch, torch.cov, torch.ones(3, 4))),
            mistake(
                partial(comet.from_torch, torch.mm, torch.ones(2, 3), torch.ones(4, 5))
            ),
        ],
    }
    found["printed"] = printed(json.loads(Path(sys.argv[1]).read_text()))
    print(json.dumps(found))


def printed(blocks: list[str]) -> list[str]:
    """Run blocks of code one after the other, and return what each printed."""
    names: dict[str, object] = {}
    texts: list[str] = []
    for code in blocks:
        with redirect_stdout(StringIO()) as out:
            exec(code, names)
        texts.append(out.getvalue())
    return texts


class Itself(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, attention: nn.MultiheadAttention):
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


if __name__ == "__main__":
    main()
