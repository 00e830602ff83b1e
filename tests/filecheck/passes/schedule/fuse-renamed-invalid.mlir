// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/cloud.yaml"},decompose{accumulator=input},distribute{dim=M axes=cx},insert-collectives,place-collectives{at=GB kind=allreduce},fuse{strategy=partial}' | filecheck %s

func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x4xf32>, %x: tensor<5x16xf32>) -> tensor<5x4xf32> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  %y = compound.gated_mlp %x, %b, %b, %p : (tensor<5x16xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
  func.return %y : tensor<5x4xf32>
}

// CHECK: fuse: loops over M end with %p, which has another name for that; run comet-accelerator, which makes several mappings
