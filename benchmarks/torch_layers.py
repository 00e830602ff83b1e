"""Layers of models in plain torch, for `model_compile.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional


def _heads(x: Tensor, count: int) -> Tensor:
    """Return the heads of channels: (batch, heads, tokens, width)."""
    return x.view(*x.shape[:-1], count, -1).transpose(1, 2)


class Llama(nn.Module):
    """RMS norms, causal attention and a gated MLP."""

    def __init__(self, width: int = 512, heads: int = 8):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.parts = nn.ModuleList(
            [nn.Linear(width, width, bias=False) for _ in range(4)]
        )
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norms
        *inputs, out = self.parts
        y = first(x)
        query, key, value = (_heads(part(y), self.heads) for part in inputs)
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        x = x + out(seen.transpose(1, 2).flatten(2))
        y = second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Encoder(nn.Module):
    """Layer norms, before (ViT) or after (BERT) attention and an MLP, with biases."""

    def __init__(self, width: int = 256, heads: int = 4, *, before: bool = True):
        super().__init__()
        self.heads, self.before = heads, before
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attention(self, x: Tensor) -> Tensor:
        """Return attention of a sequence to itself."""
        query, key, value = (
            _heads(part, self.heads) for part in self.inputs(x).chunk(3, -1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value)
        return self.out(seen.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.attention(self.first(x))
            return x + self.mlp(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + self.mlp(x))


class Vit(nn.Module):
    """Patches of an image by a convolution, a token for the class, and layers."""

    def __init__(self, layers: int, width: int = 256):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 65, width))
        self.layers = nn.Sequential(*(Encoder(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class T5(nn.Module):
    """RMS norms, attention written out, with a table of biases, and an MLP."""

    def __init__(self, width: int = 256, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.bias = nn.Parameter(torch.randn(heads, 64, 64))
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            _heads(part, self.heads) for part in self.inputs(self.first(x)).chunk(3, -1)
        )
        weights = (query @ key.mT + self.bias).softmax(-1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        return x + self.down(self.up(self.second(x)).relu())


class Experts(nn.Module):
    """A router that chooses two of eight experts for each token."""

    def __init__(self, width: int = 256, experts: int = 8):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.05)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.05)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        scores = self.router(y).softmax(-1)
        best, places = scores.topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        chosen = torch.zeros_like(scores).scatter(-1, places, best)
        inside = functional.silu(torch.einsum("td,edf->etf", y, self.up))
        return x + torch.einsum("etf,efd,te->td", inside, self.down, chosen)


def _several(make: Callable[[], nn.Module], count: int) -> nn.Module:
    return nn.Sequential(*(make() for _ in range(count)))


def _convolutions(channels: int, out: int) -> nn.Sequential:
    """Return two convolutions of 3 x 3, each with a group norm."""
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, padding=1),
        nn.GroupNorm(4, out),
        nn.ReLU(),
        nn.Conv2d(out, out, 3, padding=1),
        nn.GroupNorm(4, out),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Stages of a U-Net, each on a quarter of the pixels, with twice the channels."""

    def __init__(self, stages: int, channels: int = 8):
        super().__init__()
        self.before = _convolutions(channels, channels)
        self.inside = _convolutions(channels, 2 * channels)
        if stages > 1:
            self.inside.append(UNet(stages - 1, 2 * channels))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.Conv2d(2 * channels, channels, 1)
        )
        self.after = _convolutions(2 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        inside = self.up(self.inside(functional.max_pool2d(x, 2)))
        return self.after(torch.cat([inside, x], 1))


MODELS: Mapping[str, tuple[Callable[[int], nn.Module], tuple[int, ...]]] = {
    "llama": (lambda count: _several(Llama, count), (1, 64, 512)),
    "vit": (Vit, (2, 3, 64, 64)),
    "bert": (
        lambda count: _several(lambda: Encoder(before=False), count),
        (2, 64, 256),
    ),
    "t5": (lambda count: _several(T5, count), (2, 64, 256)),
    "experts": (lambda count: _several(Experts, count), (64, 256)),
    "unet": (UNet, (2, 8, 16, 16)),
}
"""For each name the model of some layers, and the shape of what it reads."""
