"""
Compiles the kernels of benchmarks/gpu_device for a GPU that need not be there.

Run as a program, it prints how often the assembly for sm_90 has what each kernel is
there to measure. It must not interpret.
"""

# Triton has no type stubs.
# pyright: basic, reportMissingTypeStubs=false

import json
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import triton
from gpu_device import kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {"factor": "fp32", "summand": "fp32", "turns": "i32"}
"""Types of parameters; the others are pointers to f32, or constants in capitals."""

CONSTANTS = {"UNROLLED": 16, "SIZE": 1024}

MEASURED = {
    "multiply_add": r"fma\.rn\.f32",
    "exponential": r"ex2\.approx\S*",
    "copy": r"ld\.global\S*\.cg\S*|st\.global\S*",
    "nothing": r"ret",
}
"""What the assembly of each kernel has to have."""


def compiled(name: str) -> int:
    """Compile a kernel; return how many of what it measures its assembly has."""
    kernel = getattr(kernels, name)
    signature = {
        each: "constexpr" if each in CONSTANTS else TYPES.get(each, "*fp32")
        for each in kernel.arg_names
    }
    places = {each: (index,) for index, each in enumerate(kernel.arg_names)}
    values = {places[each]: CONSTANTS[each] for each in places if each in CONSTANTS}
    aligned = {
        places[each]: [["tt.divisibility", 16]]
        for each, kind in signature.items()
        if kind.startswith("*")
    }
    source = ASTSource(kernel, signature, values, aligned)
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    return len(re.findall(rf"\s(?:{MEASURED[name]})[\s;]", text))


if __name__ == "__main__":
    print(json.dumps({name: compiled(name) for name in MEASURED}))
