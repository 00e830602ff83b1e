"""Models, and how they are spread over ranks."""

# pyright: basic
from __future__ import annotations

from torch import Tensor, nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
)


class Gated(nn.Module):
    """A gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(16, 32, bias=False) for _ in range(2))
        self.down = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    """Attention with a head for each rank."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(16, 16) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part(x).unflatten(-1, (-1, 4)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        attention = nn.functional.scaled_dot_product_attention
        seen = attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Both, with norms and residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.RMSNorm(16)
        self.attention, self.gated = Attention(), Gated()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.gated(self.second(x))


class Embedded(nn.Module):
    """An MLP of the rows of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(24, 16), nn.RMSNorm(16)
        self.gated = Gated()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        return x + self.gated(self.norm(x))


def plan(model: nn.Module, along_sequence: bool) -> dict[str, ParallelStyle]:
    """Return how a model is spread: tensor parallel, or sequence parallel as well."""
    tokens = Shard(1) if along_sequence else Replicate()
    rows = RowwiseParallel(output_layouts=tokens)
    columns = ColwiseParallel(input_layouts=tokens)
    table = RowwiseParallel(input_layouts=Replicate(), output_layouts=tokens)
    found: dict[str, ParallelStyle] = {}
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            found[name] = rows if name.endswith(("down", "out")) else columns
        elif isinstance(part, nn.Embedding):
            found[name] = table
        elif isinstance(part, (nn.LayerNorm, nn.RMSNorm)) and along_sequence:
            found[name] = SequenceParallel(use_local_output=True)
    return found
