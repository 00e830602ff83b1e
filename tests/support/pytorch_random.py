"""Random functions of two tensors: views, products, sums and elementwise functions."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

LARGEST = 400
"""The most elements of a tensor."""


def factors(number: int, random: Random) -> list[int]:
    """Return a shape with so many elements."""
    shape: list[int] = []
    while number > 1 and len(shape) < 4:
        shape.append(
            random.choice([d for d in range(1, number + 1) if number % d == 0])
        )
        number //= shape[-1]
    shape.append(number)
    random.shuffle(shape)
    return shape


def viewed(x: Tensor, random: Random) -> Tensor:
    """Return a view of a tensor, or several of it."""
    axis = random.randrange(x.dim())
    extent = x.shape[axis]
    first = random.randrange(extent)
    order = random.sample(range(x.dim()), x.dim())
    return random.choice(
        [
            lambda: x.reshape(factors(x.numel(), random)),
            lambda: x.permute(order),
            lambda: x.unsqueeze(axis),
            lambda: x.narrow(axis, first, random.randint(1, extent - first)),
            lambda: x.expand([3 if n == 1 else n for n in x.shape]),
            lambda: torch.cat([x, x * 3], axis),
        ]
    )()


def computed(x: Tensor, y: Tensor, random: Random) -> Tensor:
    """Return a function of one or two tensors."""
    choice = random.randrange(5)
    if choice == 0:
        return x.sum(random.randrange(x.dim()), keepdim=random.random() < 0.5)
    if choice == 1:
        return torch.softmax(x, -1)
    if choice == 2 and x.dim() > 1:
        return x @ x.mT
    if choice == 3 and 1 < x.dim() == y.dim() and x.shape[-1] == y.shape[-2]:
        return x @ y if x.shape[:-2] == y.shape[:-2] else x * 2
    try:
        torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return x * 2 + 1
    return x + y


def random_function(
    seed: int,
) -> tuple[Callable[..., tuple[Tensor, ...]], list[Tensor]]:
    """Return a function of two tensors, and these."""
    random = Random(seed)
    torch.manual_seed(seed)
    shapes = [
        [random.choice([1, 2, 3, 4, 6]) for _ in range(random.randint(1, 3))]
        for _ in range(2)
    ]
    if random.random() < 0.5:
        shapes[1] = shapes[0][::-1]

    def function(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        steps, known = Random(seed), [a, b]
        for _ in range(steps.randint(3, 9)):
            x = steps.choice(known)
            if x.dim() and steps.random() < 0.5:
                x = viewed(x, steps)
            elif x.dim():
                x = computed(x, steps.choice(known), steps)
            if x.numel() <= LARGEST and x.dim() <= 6:
                known.append(x)
        return tuple(known[2:]) or (a * 2,)

    return function, [torch.randn(shape) for shape in shapes]
