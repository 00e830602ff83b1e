// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},fuse,tile{factors="c: M=32 N=16 warps=4 stages=3 group=8; c_k: K=64"},outline-kernels,persist-programs{kernels="gemm_kernel"}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},fuse,tile{factors="c: M=32 N=16 warps=4 stages=3 group=8; c_k: K=64"},outline-kernels,persist-programs' | filecheck %s --check-prefix AUTO
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{persist="gemm_kernel=100" copies=descriptors specialize=true factors="c: M=32 N=16 warps=4 stages=3 group=8; c_k: K=64"}' -t triton | filecheck %s --check-prefix TRITON

// 512 tiles for 132 multiprocessors, each of which holds one program.

func.func @gemm(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %c = compound.gemm %a, %b : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  func.return %c : tensor<4096x4096xf16>
}

// CHECK: comet.persist = "gemm_kernel=132"
// CHECK: on grid [g0: M = 32, g1: N = 16]
// CHECK-SAME: schedule.launch = #schedule.launch<warps = 4, stages = 3, group = 8, persistent = 132>

// AUTO: comet.persist = "none"
// AUTO-NOT: persistent =

// TRITON:      program = tl.program_id(0)
// TRITON:      for tile in range(program, 512, 100):
// TRITON-NEXT:     pid_m, pid_n = tl.swizzle2d(tile // 16, tile % 16, 32, 16, 8)
// TRITON:          for k in range(0, end, BLOCK_K):
// TRITON:          tl.store(
// TRITON:      gemm_kernel[(100,)](
