// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator' | filecheck %s

func.func @part(%x: tensor<6x10xf32, #compound.dims<M, N>>) -> tensor<6x4xf32, #compound.dims<M, N>> {
  %p = compound.slice %x "N" [3, 4] : tensor<6x10xf32, #compound.dims<M, N>> -> tensor<6x4xf32, #compound.dims<M, N>>
  func.return %p : tensor<6x4xf32, #compound.dims<M, N>>
}

// CHECK: outline-mappings: @part returns %p, which no operation computes; return what is computed, and no more

// -----

func.func @rows(%x: tensor<6x10xf32, #compound.dims<M, N>>, %i: tensor<3xi64, #compound.dims<T>>) -> tensor<3x10xf32, #compound.dims<T, N>> {
  %r = compound.gather %x, %i along "M" : tensor<6x10xf32, #compound.dims<M, N>>, tensor<3xi64, #compound.dims<T>> -> tensor<3x10xf32, #compound.dims<T, N>>
  func.return %r : tensor<3x10xf32, #compound.dims<T, N>>
}

// CHECK: fuse: @rows has 'compound.gather', and addresses in the COMET files do not depend on data
