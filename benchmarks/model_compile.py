"""
How long a step of training takes to compile: models of some layers in plain torch.

    python benchmarks/model_compile.py [--models llama vit bert t5 experts unet]
        [--layers 1 2 4] [--machine h200x1]

Prints for the forward and the backward graph of `torch.compile(backend="comet")` their
ops, the processor time from IR to a module of Triton, once, in one process, and how
many kernels Triton has to compile, for how many launches. No kernel runs.
"""

from __future__ import annotations

import argparse
import re
from time import process_time

import torch
from markdown import markdown
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch_layers import MODELS

import comet
from comet.pytorch.decompositions import decompositions
from comet.pytorch.importer import imported
from comet.pytorch.torch_ops import whole_attention

LAUNCH = re.compile(r"_kernel(?:\[|,$)", re.M)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=MODELS)
    parser.add_argument("--layers", nargs="+", type=int, default=(1, 2, 4))
    parser.add_argument("--machine", default="h200x1")
    options = parser.parse_args()
    hardware = f"samples/hardware/{options.machine}.yaml"
    rows: list[list[str]] = []
    for name in options.models:
        for count in options.layers:
            columns = zip(*measured(name, count, hardware), strict=True)
            rows.append([name, str(count), *map(" + ".join, columns)])
    columns = "model", "layers", "ops", "compile", "kernels to compile", "launches"
    print(markdown(columns, rows))


def measured(name: str, layers: int, hardware: str) -> list[tuple[str, ...]]:
    """Return ops, time, kernels and launches of the graphs of a step of training."""
    torch.compiler.reset()
    make, shape = MODELS[name]
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    model, found = make(layers), list[tuple[str, ...]]()

    def compiled(graph: fx.GraphModule, _: object):
        program = imported(graph.graph, "graph").module
        ops = sum(1 for _ in program.walk())
        start = process_time()
        text = comet.compile(program, hardware).emit("triton")
        seconds = f"{process_time() - start:.1f} s"
        kernels, launches = text.count("@triton.jit"), len(LAUNCH.findall(text))
        found.append((str(ops), seconds, str(kernels), str(launches)))
        return make_boxed_func(graph.forward)

    def backend(graph: fx.GraphModule, inputs: list[torch.Tensor]):
        compiler = aot_autograd(fw_compiler=compiled, decompositions=decompositions())
        with whole_attention(graph):
            return compiler(graph, inputs)

    step = torch.compile(model, backend=backend, dynamic=False)  # pyright: ignore[reportUnknownMemberType]
    step(torch.randn(*shape)).square().mean().backward()
    return found


if __name__ == "__main__":
    main()
