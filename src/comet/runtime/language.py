"""Functions that emitted kernels and launches use, besides `triton.language`."""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false

import os

import torch
import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")


DESCRIPTOR_BYTES = 16
"""The alignment of the address of a described tensor, bytes: CUDA driver API."""


def allow_descriptors(**tensors: torch.Tensor) -> None:
    """
    Prepare the launch of kernels that make descriptors of these tensors.

    Triton keeps descriptors in device memory, which it asks for at each launch. Raises
    `ValueError` for a tensor at an address that no descriptor can have.
    """
    for name, tensor in tensors.items():
        if tensor.data_ptr() % DESCRIPTOR_BYTES:
            raise ValueError(
                f"{name} begins at no multiple of {DESCRIPTOR_BYTES} bytes, as tensor "
                f"descriptors need; pass {name}.clone(), or emit the module with "
                "copies=pointers"
            )
    triton.set_allocator(_allocate)


def _allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Return device memory for a launch; torch aligns it to 512 bytes."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def expect_triton(version: str) -> None:
    """
    Raise `ValueError` if this Triton is older than the kernels of a module need.

    Triton's interpreter ignores how programs are divided, so there any version will do.
    """
    if INTERPRETED:
        return
    found = triton.__version__
    if _numbers(found) < _numbers(version):
        raise ValueError(
            f"programs of this module are clusters of thread blocks, which Triton "
            f"{version} or newer compiles, and this is {found}; install that, or emit "
            "the module without the option triton of attach-hardware"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the major and the minor number of a version."""
    return tuple(int(number) for number in version.split(".")[:2])


@triton.jit
def dot_operand(block):
    """
    Return a bf16 block in the type `tl.dot` needs: bf16, or f32 in the interpreter.

    Triton's interpreter holds bf16 as raw 16-bit integers and multiplies these.
    """
    if INTERPRETED:
        block = block.to(tl.float32)
    return block
