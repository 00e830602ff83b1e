"""Device functions that emitted kernels call, beside those of `triton.language`."""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false

import os

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")


@triton.jit
def dot_operand(block):
    """
    Return a bf16 block in the type `tl.dot` needs: bf16, or f32 in the interpreter.

    Triton's interpreter holds bf16 as raw 16-bit integers and multiplies these.
    """
    if INTERPRETED:
        block = block.to(tl.float32)
    return block
