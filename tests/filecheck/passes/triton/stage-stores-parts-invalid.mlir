// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{stores="gemm_kernel=3"}' 2>&1 | filecheck %s --check-prefix PARTS
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{stores="gemm_kernel" persist=all factors="c: M=32 N=32 warps=8 stages=14 group=1; c_k: K=128"}' 2>&1 | filecheck %s --check-prefix ROOM

func.func @gemm(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %c = compound.gemm %a, %b : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  func.return %c : tensor<4096x4096xf16>
}

// PARTS: stage-stores: kernels has gemm_kernel=3, and descriptors can store rows of its tiles in 1, 2, 4, 8 parts; give one of these numbers
// ROOM: stage-stores: the tiles of @gemm_kernel leave no shared memory for a part of a result; leave it out, or take fewer stages
