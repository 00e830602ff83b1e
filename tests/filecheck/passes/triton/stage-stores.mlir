// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{to=dataflow persist=all stores=all factors="c: M=32 N=16 warps=8 stages=4 group=8; c_k: K=64"},materialize-copies,mask-copies,use-descriptors{kernels=specialized}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{persist=all stores=all factors="c: M=32 N=16 warps=8 stages=4 group=8; c_k: K=64"}' -t triton | filecheck %s --check-prefix TRITON
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{persist=all stores=all factors="c: M=32 N=16 warps=8 stages=4 group=8; c_k: K=64"}' --explain 2>&1 >/dev/null | filecheck %s --check-prefix EXPLAIN
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{to=dataflow persist=all stores=all factors="c: M=32 N=16 warps=8 stages=4 group=8; c_k: K=64"},persist-programs{kernels="gemm_kernel=100"}' | filecheck %s --check-prefix AGAIN

// Four stages of 48 KiB leave room for half of a tile of 64 KiB.

func.func @gemm(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %c = compound.gemm %a, %b : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  func.return %c : tensor<4096x4096xf16>
}

// CHECK: comet.staged = "gemm_kernel=2"
// CHECK: #schedule.launch<warps = 8, stages = 4, group = 8, persistent = 132, parts = 2>
// CHECK: schedule.copy %c{{.*}} mask [] descriptor parts 2 : tensor<128x256xf16, {{.*}} @REG>> -> {{.*}} @HBM>>

// TRITON:      c_out = tl.make_tensor_descriptor(c_ptr, (M, N), (N, 1), (BLOCK_M, 128))
// TRITON:      c_half, c_half_1 = tl.split(
// TRITON-NEXT:   tl.permute(tl.reshape(c_1, (128, 2, 128)), (0, 2, 1))
// TRITON:      c_out.store((start_m, start_n), c_half)
// TRITON-NEXT: c_out.store((start_m, start_n + 128), c_half_1)

// AGAIN:       group = 8, persistent = 100, parts = 2>

// EXPLAIN:      stores for @gemm_kernel
// EXPLAIN-NOT:  whole
// EXPLAIN:      * 2 parts
