"""The models of benchmarks/torch_models.py: blocks of transformers, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Model:
    """A function of tensors, with its inputs."""

    run: Callable[..., Tensor]
    inputs: Sequence[Tensor]
    learns: bool
    """Whether its gradients are computed, of parameters and of inputs that need one."""

    def leaves(self) -> list[Tensor]:
        """Return what gradients are taken of."""
        own = self.run.parameters() if isinstance(self.run, nn.Module) else ()
        return [*(each for each in self.inputs if each.requires_grad), *own]


class Attention(nn.Module):
    """Causal attention, whose keys several query heads may share."""

    def __init__(self, width: int, heads: int, groups: int, *, bias: bool):
        super().__init__()
        self.size, self.shared = width // heads, groups != heads
        self.query = nn.Linear(width, width, bias)
        self.key = nn.Linear(width, groups * self.size, bias)
        self.value = nn.Linear(width, groups * self.size, bias)
        self.out = nn.Linear(width, width, bias)

    def forward(self, x: Tensor, *angles: Tensor) -> Tensor:
        """Attend within rows of x (B, T, width); `angles` are cos and sin (T, size)."""
        query, key, value = (
            part(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        if angles:
            query, key = rotated(query, *angles), rotated(key, *angles)
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=self.shared
        )
        return self.out(seen.transpose(1, 2).flatten(2))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply a rotary position embedding, in the form of two halves."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Llama(nn.Module):
    """A block with RMSNorm, grouped heads, rotary embedding and a gated MLP."""

    def __init__(self, width: int, heads: int, groups: int, hidden: int):
        super().__init__()
        self.first, self.second = (nn.RMSNorm(width, eps=1e-5) for _ in range(2))
        self.attention = Attention(width, heads, groups, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return the block of x (B, T, width)."""
        x = x + self.attention(self.first(x), cos, sin)
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Gpt2(nn.Module):
    """A block with LayerNorm, biases and GELU."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, heads, bias=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block of x (B, T, width)."""
        x = x + self.attention(self.first(x))
        y = functional.gelu(self.up(self.second(x)), approximate="tanh")
        return x + self.down(y)


def softmax_of_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the softmax of a b along its rows."""
    return torch.softmax(a @ b, -1)


@dataclass(frozen=True)
class Sizes:
    """How large the models are."""

    llama: tuple[int, int, int, int]
    """Width, heads, groups of heads, and width of the MLP: Llama 3 8B."""
    gpt2: tuple[int, int]
    """Width and heads: GPT-2 small."""
    tokens: int
    vocabulary: int
    product: int
    """All extents of GEMM and softmax."""


REAL = Sizes((4096, 32, 8, 14336), (768, 12), 2048, 32000, 4096)
TINY = Sizes((64, 4, 2, 96), (32, 2), 16, 40, 16)


def models(sizes: Sizes, device: str) -> Mapping[str, Callable[[], Model]]:
    """Return what makes each model in bf16, by name."""

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, device=device, dtype=torch.bfloat16)

    def llama(tokens: int, *, learns: bool) -> Model:
        width, heads, *_ = sizes.llama
        angles = drawn(tokens, width // heads), drawn(tokens, width // heads)
        block = Llama(*sizes.llama).to(device, torch.bfloat16)
        return Model(block, (drawn(1, tokens, width), *angles), learns)

    def gpt2() -> Model:
        block = Gpt2(*sizes.gpt2).to(device, torch.bfloat16)
        return Model(block, (drawn(2, sizes.tokens // 2, sizes.gpt2[0]),), True)

    def loss() -> Model:
        scores = drawn(sizes.tokens, sizes.vocabulary).requires_grad_()
        labels = torch.randint(0, sizes.vocabulary, (sizes.tokens,), device=device)
        return Model(functional.cross_entropy, (scores, labels), True)

    def product() -> Model:
        operands = [drawn(sizes.product, sizes.product) for _ in range(2)]
        return Model(softmax_of_product, operands, False)

    few = sizes.tokens // 16
    return {
        "gemm_softmax": product,
        "loss, step": loss,
        f"llama {few}": lambda: llama(few, learns=False),
        f"llama {sizes.tokens}": lambda: llama(sizes.tokens, learns=False),
        "gpt2, step": gpt2,
        f"llama {sizes.tokens}, step": lambda: llama(sizes.tokens, learns=True),
    }
