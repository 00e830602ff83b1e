"""The ops whose registers are recorded, and what the model reads from them."""

from __future__ import annotations

from collections.abc import Mapping

from ladder_programs import SAMPLES, resized
from row_ops import OPS as ROW_OPS
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
ROWS: Mapping[str, str] = {
    name: ROW_OPS[name].text(4096, columns, "bf16")
    for name, columns in {"softmax": 4096, "layernorm": 8192, "rmsnorm": 2048}.items()
}
"""Operations on rows, without products."""
SUMS: Mapping[str, str] = {
    "sum_of_gemms": """
!a = tensor<4096x4096xbf16, #compound.dims<M, K>>
!b = tensor<4096x4096xbf16, #compound.dims<K, N>>
!w = tensor<4096x4096xf32, #compound.dims<M, N>>
!y = tensor<4096x4096xbf16, #compound.dims<M, N>>
func.func @sum_of_gemms(%a: !a, %b: !b, %c: !a, %d: !b) -> !y {
  %p = compound.contract %a, %b : !a, !b -> !w
  %q = compound.contract %c, %d : !a, !b -> !w
  %s = compound.map add %p, %q : !w, !w -> !w
  %y = compound.cast %s : !w -> !y
  func.return %y : !y
}
""",
    "gemm_of_heads": """
!a = tensor<8x4x2048x128xbf16, #compound.dims<K, R, M, E>>
!b = tensor<4096x8x4x128xbf16, #compound.dims<N, K, R, E>>
!w = tensor<2048x4096xf32, #compound.dims<M, N>>
!y = tensor<2048x4096xbf16, #compound.dims<M, N>>
func.func @gemm_of_heads(%a: !a, %b: !b) -> !y {
  %p = compound.contract %a, %b : !a, !b -> !w
  %y = compound.cast %p : !w -> !y
  func.return %y : !y
}
""",
    "sum_of_heads": """
!a = tensor<8x2048x128xbf16, #compound.dims<K, M, E>>
!b = tensor<4096x8x128xbf16, #compound.dims<N, K, E>>
!w = tensor<2048x4096xf32, #compound.dims<M, N>>
!y = tensor<2048x4096xbf16, #compound.dims<M, N>>
func.func @sum_of_heads(%a: !a, %b: !b, %c: !a, %d: !b) -> !y {
  %p = compound.contract %a, %b : !a, !b -> !w
  %q = compound.contract %c, %d : !a, !b -> !w
  %s = compound.map add %p, %q : !w, !w -> !w
  %y = compound.cast %s : !w -> !y
  func.return %y : !y
}
""",
}
"""Sums of products, and products that are summed over several dimensions."""
SHORT: Mapping[str, str] = {
    "scores": """
!q = tensor<4x32x4096x128xbf16, #compound.dims<B, H, M, D>>
!k = tensor<4x32x4096x128xbf16, #compound.dims<B, H, N, D>>
!w = tensor<4x32x4096x4096xf32, #compound.dims<B, H, M, N>>
!s = tensor<4x32x4096x4096xbf16, #compound.dims<B, H, M, N>>
func.func @scores(%q: !q, %k: !k) -> !s {
  %p = compound.contract %q, %k : !q, !k -> !w
  %s = compound.cast %p : !w -> !s
  func.return %s : !s
}
"""
}
"""Products of few terms, whose loops are unrolled."""
BEFORE = "decompose{accumulator=f32},sink-renames,stream,fuse{strategy=full}"


def fused(op: str, hardware: str) -> ModuleOp:
    """Return an op as one kernel without tiles."""
    path = SAMPLES / "hardware" / f"{hardware}.yaml"
    text = _elementary(op) or resized(op, OPS[op])
    return comet.compile(comet.parse(text), path, BEFORE).module


def _elementary(op: str) -> str | None:
    """Return the text of an op that has no sample, else None."""
    found = (texts.get(op) for texts in (GRAPHS, ROWS, SUMS, SHORT))
    return next(filter(None, found), None)


def kernel_of(module: ModuleOp) -> tuple[FuncOp, KernelSummary, Device]:
    """Return the function of a module, the summary of its only kernel, and the GPU."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    function = next(each for each in functions if any(True for _ in grid_nodes(each)))
    system = attached_system(module)
    (node,) = grid_nodes(function)
    gpu = device_of(system)
    return function, summarize(node, gpu_levels(system), gpu), gpu
