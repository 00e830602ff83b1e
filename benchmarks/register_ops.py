"""The ops whose registers are recorded, and what the model reads from them."""

from __future__ import annotations

from collections.abc import Mapping

from ladder_programs import SAMPLES, resized
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import comet
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.passes.analysis.grid import grid_nodes

OPS: Mapping[str, Mapping[int, int]] = {
    "gemm": {128: 4096, 64: 4096, 256: 4096},
    "gemm_softmax": {128: 65536, 64: 256, 256: 256},
    "gemm_layernorm": {128: 32768, 64: 1024, 256: 512},
    "attention": {1: 4, 8: 32, 128: 4096, 256: 4096, 64: 128, 32: 128},
    "gated_mlp": {128: 4096, 64: 1024, 256: 4096, 32: 128},
    "gemm_rmsnorm": {128: 16384, 64: 1024, 256: 256},
    "gemm_gemm": {128: 4096, 64: 1024, 256: 4096, 32: 128},
    "attention_causal": {1: 4, 8: 32, 128: 4096, 256: 4096, 64: 128, 32: 128},
    "flash_decode": {4: 16, 2: 12, 3: 8, 256: 32768, 32: 128, 16: 128},
    "gemm_residual": {},
}
"""The extents of each op, by those of its sample; none for `GRAPHS`."""
GRAPHS: Mapping[str, str] = {
    "gemm_residual": """
!a = tensor<4096x4096xf16, #compound.dims<M, K>>
!b = tensor<4096x4096xf16, #compound.dims<K, N>>
!x = tensor<4096x4096xf16, #compound.dims<M, N>>
!y = tensor<4096x4096xf32, #compound.dims<M, N>>
func.func @gemm_residual(%a: !a, %b: !b, %x: !x) -> !x {
  %c = compound.contract %a, %b : !a, !b -> !y
  %wide = compound.cast %x : !x -> !y
  %y = compound.map add %wide, %c : !y, !y -> !y
  %z = compound.cast %y : !y -> !x
  func.return %z : !x
}
"""
}
"""Ops without a sample, as elementary ops."""
BEFORE = "decompose{accumulator=f32},sink-renames,stream,fuse{strategy=full}"


def fused(op: str, hardware: str) -> ModuleOp:
    """Return an op as one kernel without tiles."""
    path = SAMPLES / "hardware" / f"{hardware}.yaml"
    text = GRAPHS.get(op) or resized(op, OPS[op])
    return comet.compile(comet.parse(text), path, BEFORE).module


def kernel_of(module: ModuleOp) -> tuple[FuncOp, KernelSummary, Device]:
    """Return the function of a module, the summary of its only kernel, and the GPU."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    function = next(each for each in functions if any(True for _ in grid_nodes(each)))
    system = attached_system(module)
    (node,) = grid_nodes(function)
    gpu = device_of(system)
    return function, summarize(node, gpu_levels(system), gpu), gpu
