"""
Compiles kernels of `rank_kernels` for GPUs that need not be there.

`python rank_compile.py` prints one JSON object for each kernel and target: the memory
operations and barriers of the assembly, in order. It must not interpret.
"""

# Triton has no type stubs.
# pyright: basic, reportMissingTypeStubs=false

import json
import re

import rank_kernels as kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
SHOWN = {
    "sm_90": re.compile(r"^\s*(?:@\S+ )?((?:ld|st|atom|red)\.\S*global\S*|bar\.sync)"),
    "gfx942": re.compile(
        r"^\s*(global_(?:store|atomic)\w*.*|global_load.*sc1.*|s_barrier|"
        r"s_waitcnt vmcnt\(0\).*|buffer_inv.*|buffer_wbl2.*)"
    ),
}
GATHER = {"W": 4, "N": 1024, "BLOCK": 1024, "BUFFERS": 2, "AHEAD": 0}
CONSTANTS = {
    "ping_pong": {"ROUNDS": 2},
    "push_all_gather": {**GATHER, "HOW": "signal", "WAIT_FIRST": False},
    "pull_when_ready": {"W": 4, "N": 1024, "WAIT": True},
    "push_gemm": {"W": 4, "M": 100, "N": 64, "K": 64, "BM": 64},
    "send_parts": {"BLOCK": 256},
    "counted_gather": {"W": 4, "N": 256},
    "receive_parts": {"W": 4, "N": 256},
}
INTEGERS = ("current", "peer", "COUNT")
TYPES = {
    "bases": "*i64",
    "counters": "*i32",
    "counts": "*i32",
    "flags": "*i32",
    "ready": "*i32",
}


def compiled(name: str, target: str) -> dict[str, object]:
    """Compile one kernel; return what its assembly does to memory."""
    kernel = getattr(kernels, name)
    constants = CONSTANTS[name]
    signature: dict[str, str] = {}
    for parameter in kernel.arg_names:
        signature[parameter] = TYPES.get(parameter, "*fp32")
        if parameter in INTEGERS:
            signature[parameter] = "i32"
        if parameter in constants:
            signature[parameter] = "constexpr"
    values = {(kernel.arg_names.index(key),): v for key, v in constants.items()}
    aligned = {
        (index,): [["tt.divisibility", 16]]
        for index, parameter in enumerate(kernel.arg_names)
        if signature[parameter].startswith("*")
    }
    source = ASTSource(kernel, signature, values, aligned)
    asm = triton.compile(source, target=TARGETS[target]).asm
    text = asm["ptx"] if target == "sm_90" else asm["amdgcn"]
    found = [SHOWN[target].match(line) for line in text.splitlines()]
    operations = [match[1].strip() for match in found if match]
    return {"kernel": name, "target": target, "operations": operations}


def main() -> None:
    """Compile every kernel for every target."""
    for name in CONSTANTS:
        for target in TARGETS:
            print(json.dumps(compiled(name, target)))


if __name__ == "__main__":
    main()
