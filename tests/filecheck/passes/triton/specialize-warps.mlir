// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},fuse,tile{factors="c: M=2 N=2 warps=4 stages=3; c_k: K=2"},outline-kernels,materialize-copies,hoist-copies,mask-copies,use-descriptors,specialize-warps' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full copies=descriptors specialize=true factors="c: M=2 N=2 warps=4 stages=3; c_k: K=2"}' | comet-opt | filecheck %s --check-prefix TRITON

func.func @gemm(%a: tensor<128x128xf16>, %b: tensor<128x128xf16>) -> tensor<128x128xf16> {
  %c = compound.gemm %a, %b : (tensor<128x128xf16>, tensor<128x128xf16>) -> tensor<128x128xf16>
  func.return %c : tensor<128x128xf16>
}

// CHECK: schedule.temporal @c_k [K = 2] specialize ins(
// TRITON: tl.for warp_specialize %k : i32
