// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=full}' | filecheck %s

func.func @named(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}

// CHECK: fuse: @named is at the graph level and this pass takes the elementary or spmd level; run decompose first

// -----

func.func @wide(%x: tensor<4x200000xf32, #compound.dims<M, N>>) -> tensor<4x200000xf32, #compound.dims<M, N>> {
  %l = compound.reduce add %x : tensor<4x200000xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %p = compound.map div %x, %l : tensor<4x200000xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x200000xf32, #compound.dims<M, N>>
  func.return %p : tensor<4x200000xf32, #compound.dims<M, N>>
}

// CHECK: fuse: the kernel that makes %p needs 1048580 bytes of REG and 0 bytes of SMEM with its smallest tiles, more than fit beside addresses and buffers in the 262144 and 232448 bytes there; fuse less, with strategy=partial or auto
