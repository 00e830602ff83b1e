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
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import triton
from gpu_device import exchange_kernels, kernels
from triton.compiler import ASTSource
from triton.runtime import driver

from comet.runtime.compile_check import TARGETS, Elsewhere

TYPES = {"factor": "fp32", "summand": "fp32", "turns": "i32"}
TYPES |= dict.fromkeys(("flags", "counters"), "*i32") | {"heap_bases": "*i64"}
"""Types of parameters; the others are pointers to f32, or constants in capitals."""

CONSTANTS = {"UNROLLED": 16, "SIZE": 1024, "GROUP": 16, "PARTS": 16, "SYSTEM": False}
OTHERS = {
    "exchange": ("exchange", {}, {}),
    "system_exchange": ("exchange", {"SYSTEM": True}, {}),
    "cluster_exchange": ("cluster_exchange", {}, {"num_ctas": 2}),
}
"""Those that exchange: the function, other constants, and options."""

MEASURED = {
    "multiply_add": r"fma\.rn\.f32",
    "exponential": r"ex2\.approx\S*",
    "copy": r"ld\.global\S*\.cg\S*|st\.global\S*",
    "read": r"ld\.global\S*\.cg\S*",
    "nothing": r"ret",
    "exchange": r"(?:atom|red)\.global\.gpu\.release\.add\.u32",
    "system_exchange": r"(?:atom|red)\.global\.sys\.release\.add\.u32",
    "cluster_exchange": r"mapa\.shared::cluster\.u32",
}
"""What the assembly of each kernel has to have."""


def compiled(name: str) -> int:
    """Compile a kernel; return how many of what it measures its assembly has."""
    function, others, options = OTHERS.get(name, (name, {}, {}))
    kernel = getattr(exchange_kernels if name in OTHERS else kernels, function)
    constants = CONSTANTS | others
    signature = {
        each: "constexpr" if each in CONSTANTS else TYPES.get(each, "*fp32")
        for each in kernel.arg_names
    }
    places = {each: (index,) for index, each in enumerate(kernel.arg_names)}
    values = {places[each]: constants[each] for each in places if each in constants}
    aligned = {
        places[each]: [["tt.divisibility", 16]]
        for each, kind in signature.items()
        if kind.startswith("*")
    }
    source = ASTSource(kernel, signature, values, aligned)
    target = TARGETS["sm_90"]
    elsewhere: Any = Elsewhere(target)
    driver.set_active(elsewhere)
    text = triton.compile(source, target=target, options=options).asm["ptx"]
    return len(re.findall(rf"\s(?:{MEASURED[name]})[\s;]", text))


if __name__ == "__main__":
    print(json.dumps({name: compiled(name) for name in MEASURED}))
