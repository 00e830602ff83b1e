// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},fuse{strategy=full}' | filecheck %s

// Collectives without a level.

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>> {
  %y = collective.spmd on @edge ins(%x : tensor<4x32xf16, #compound.dims<M, N>>) sharded [{N = ["cx", "cy", "kx", "ky"]}] outs(tensor<4x32xf16, #compound.dims<M, N>>) sharded [{N = ["cx", "cy", "kx", "ky"]}] {
  ^bb0(%x_1: tensor<4x2xf16, #compound.dims<M, N>>):
    %m = compound.reduce max %x_1 : tensor<4x2xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
    %m_1 = collective.all_reduce max %m on @edge ["kx", "ky"] : tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
    %m_2 = collective.all_reduce max %m_1 on @edge ["cx", "cy"] : tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
    %y_1 = compound.map sub %x_1, %m_2 : tensor<4x2xf16, #compound.dims<M, N>>, tensor<4xf16, #compound.dims<M>> -> tensor<4x2xf16, #compound.dims<M, N>>
    collective.yield %y_1 : tensor<4x2xf16, #compound.dims<M, N>>
  }
  func.return %y : tensor<4x32xf16, #compound.dims<M, N>>
}

// CHECK: fuse: 'collective.all_reduce' is at no level; run place-collectives first

// -----

// Results that no operation computes.

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> (tensor<4x32xf16, #compound.dims<M, N>>, tensor<4x32xf16, #compound.dims<M, N>>) {
  %y = compound.map exp %x : tensor<4x32xf16, #compound.dims<M, N>> -> tensor<4x32xf16, #compound.dims<M, N>>
  func.return %y, %x : tensor<4x32xf16, #compound.dims<M, N>>, tensor<4x32xf16, #compound.dims<M, N>>
}

// CHECK: fuse: @f returns %x, an argument, and accelerators have no operation that only stores one; return computed values only

// -----

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>> {
  %c = compound.fill 2.0 : tensor<4x32xf16, #compound.dims<M, N>>
  func.return %c : tensor<4x32xf16, #compound.dims<M, N>>
}

// CHECK: fuse: @f returns %c, a constant, and accelerators have no operation that only stores one; return computed values only

// -----

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<f16, #compound.dims<>> {
  %c = compound.contract %x, %x : tensor<4x32xf16, #compound.dims<M, N>>, tensor<4x32xf16, #compound.dims<M, N>> -> tensor<f16, #compound.dims<>>
  %d = compound.map tanh %c : tensor<f16, #compound.dims<>> -> tensor<f16, #compound.dims<>>
  func.return %d : tensor<f16, #compound.dims<>>
}

// CHECK: fuse: %d is computed only from numbers, and the loops of an accelerator's nodes need a dimension; compute it from a tensor, with a dimension of extent 1 if need be

// -----

// A step for one element at a time.

func.func @f(%x: tensor<8xf16, #compound.dims<N>>) -> tensor<f16, #compound.dims<>> {
  %zero = compound.fill 0.0 : tensor<f16, #compound.dims<>>
  %y = compound.fold over "N" ins(%x : tensor<8xf16, #compound.dims<N>>) init(%zero : tensor<f16, #compound.dims<>>) step {
  ^bb0(%c: tensor<1xf16, #compound.dims<N>>, %old: tensor<f16, #compound.dims<>>):
    %n = compound.reduce add %c : tensor<1xf16, #compound.dims<N>> -> tensor<f16, #compound.dims<>>
    %new = compound.map add %old, %n : tensor<f16, #compound.dims<>>, tensor<f16, #compound.dims<>> -> tensor<f16, #compound.dims<>>
    compound.yield %new : tensor<f16, #compound.dims<>>
  } merge {
  ^bb0(%a: tensor<f16, #compound.dims<>>, %b: tensor<f16, #compound.dims<>>):
    %new = compound.map add %a, %b : tensor<f16, #compound.dims<>>, tensor<f16, #compound.dims<>> -> tensor<f16, #compound.dims<>>
    compound.yield %new : tensor<f16, #compound.dims<>>
  } -> tensor<f16, #compound.dims<>>
  func.return %y : tensor<f16, #compound.dims<>>
}

// CHECK: fuse: the step of a fold over N takes one element at a time, and a loop takes tiles of any size; write the step for chunks of the whole extent of N

// -----

func.func @f(%x: tensor<8xf16, #compound.dims<N>>) -> tensor<8xf16, #compound.dims<N>> {
  %two = compound.fill 2.0 : tensor<8xf16, #compound.dims<N>>
  %sum = compound.reduce add %two : tensor<8xf16, #compound.dims<N>> -> tensor<f16, #compound.dims<>>
  %y = compound.map add %x, %sum : tensor<8xf16, #compound.dims<N>>, tensor<f16, #compound.dims<>> -> tensor<8xf16, #compound.dims<N>>
  func.return %y : tensor<8xf16, #compound.dims<N>>
}

// CHECK: fuse: %sum is reduced over N, which only constants have; write its value without a reduction

// -----

func.func @f(%x: tensor<8xf16, #compound.dims<M>>, %s: tensor<f16, #compound.dims<>>) -> tensor<8x4xf16, #compound.dims<M, N>> {
  %two = compound.fill 2.0 : tensor<4xf16, #compound.dims<N>>
  %scaled = compound.map mult %two, %s : tensor<4xf16, #compound.dims<N>>, tensor<f16, #compound.dims<>> -> tensor<4xf16, #compound.dims<N>>
  %y = compound.map add %x, %scaled : tensor<8xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<N>> -> tensor<8x4xf16, #compound.dims<M, N>>
  func.return %y : tensor<8x4xf16, #compound.dims<M, N>>
}

// CHECK: fuse: %scaled has the dimension N, which only constants have; make the constant an argument of the function

// -----

func.func @f(%x: tensor<8xf16, #compound.dims<N>>) -> tensor<f16, #compound.dims<>> {
  %low = compound.fill -1.0 : tensor<f16, #compound.dims<>>
  %y = compound.fold over "N" ins(%x : tensor<8xf16, #compound.dims<N>>) init(%low : tensor<f16, #compound.dims<>>) step {
  ^bb0(%chunk: tensor<8xf16, #compound.dims<N>>, %old: tensor<f16, #compound.dims<>>):
    compound.yield %low : tensor<f16, #compound.dims<>>
  } merge {
  ^bb0(%a: tensor<f16, #compound.dims<>>, %b: tensor<f16, #compound.dims<>>):
    compound.yield %a : tensor<f16, #compound.dims<>>
  } -> tensor<f16, #compound.dims<>>
  func.return %y : tensor<f16, #compound.dims<>>
}

// CHECK: fuse: the step of a fold over N yields %low, which it does not make; compute every iter_arg in the step

// -----

func.func @f(%x: tensor<8xf16, #compound.dims<N>>) -> tensor<2x4xf16, #compound.dims<P, Q>> {
  %y = compound.map exp %x : tensor<8xf16, #compound.dims<N>> -> tensor<8xf16, #compound.dims<N>>
  %z = compound.rename %y split "N" : tensor<8xf16, #compound.dims<N>> -> tensor<2x4xf16, #compound.dims<P, Q>>
  func.return %z : tensor<2x4xf16, #compound.dims<P, Q>>
}

// CHECK: fuse: %z sees the dimensions N as P, Q, and a tensor of the COMET files has one name for each; run outline-mappings first, as comet-accelerator does, or compile for a GPU

// -----

func.func @f(%x: tensor<8xf32, #compound.dims<N>>) -> tensor<f32, #compound.dims<>> {
  %low = compound.fill -3.0e+38 : tensor<f32, #compound.dims<>>
  %y = compound.rename %x : tensor<8xf32, #compound.dims<N>> -> tensor<8xf32, #compound.dims<P>>
  %z = compound.fold over "P" ins(%y : tensor<8xf32, #compound.dims<P>>) init(%low : tensor<f32, #compound.dims<>>) step {
  ^bb0(%chunk: tensor<8xf32, #compound.dims<P>>, %old: tensor<f32, #compound.dims<>>):
    %now = compound.reduce max %chunk : tensor<8xf32, #compound.dims<P>> -> tensor<f32, #compound.dims<>>
    %new = compound.map max %old, %now : tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } merge {
  ^bb1(%a: tensor<f32, #compound.dims<>>, %b: tensor<f32, #compound.dims<>>):
    %new = compound.map max %a, %b : tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } -> tensor<f32, #compound.dims<>>
  func.return %z : tensor<f32, #compound.dims<>>
}

// CHECK: fuse: %y sees the dimensions N as P, and a tensor of the COMET files has one name for each

// -----

func.func @resized(%x: tensor<4x3xf16, #compound.dims<M, N>>) -> tensor<4xf16, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<4x3xf16, #compound.dims<M, N>> -> tensor<4x3xf16, #compound.dims<M, N>>
  %z = compound.slice %y : tensor<4x3xf16, #compound.dims<M, N>> -> tensor<4x2xf16, #compound.dims<M, N>>
  %m = compound.reduce max %z : tensor<4x2xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
  func.return %m : tensor<4xf16, #compound.dims<M>>
}

// CHECK: fuse: 'compound.slice' of @resized changes the extents of a value inside the function, and accelerators read and write whole tensors; run outline-mappings first, as comet-accelerator does, or compile for a GPU

// -----

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @unequal_shards(%x: tensor<3x4xf16, #compound.dims<M, N>>) -> tensor<3x4xf16, #compound.dims<M, N>> {
  %y = collective.spmd on @edge ins(%x : tensor<3x4xf16, #compound.dims<M, N>>) sharded [{M = ["cx"]}] outs(tensor<3x4xf16, #compound.dims<M, N>>) sharded [{}] {
  ^bb0(%x_1: tensor<2x4xf16, #compound.dims<M, N>>):
    %e = compound.map exp %x_1 : tensor<2x4xf16, #compound.dims<M, N>> -> tensor<2x4xf16, #compound.dims<M, N>>
    %g = collective.all_gather "M" %e on @edge ["cx"] from "GB" to "GB" : tensor<2x4xf16, #compound.dims<M, N>> -> tensor<3x4xf16, #compound.dims<M, N>>
    %z = compound.map exp %g : tensor<3x4xf16, #compound.dims<M, N>> -> tensor<3x4xf16, #compound.dims<M, N>>
    collective.yield %z : tensor<3x4xf16, #compound.dims<M, N>>
  }
  func.return %y : tensor<3x4xf16, #compound.dims<M, N>>
}

// CHECK: fuse: 'collective.all_gather' joins 2 shards of 2 along M, which has 3, and instances of an accelerator have equal shards; distribute M over axes that divide it, or pad it

// -----

func.func @embedded(%table: tensor<9x4xf16, #compound.dims<V, D>>, %ids: tensor<8xi32, #compound.dims<T>>) -> tensor<8x4xf16, #compound.dims<T, D>> {
  %x = compound.gather %table, %ids along "V" : tensor<9x4xf16, #compound.dims<V, D>>, tensor<8xi32, #compound.dims<T>> -> tensor<8x4xf16, #compound.dims<T, D>>
  %e = compound.map exp %x : tensor<8x4xf16, #compound.dims<T, D>> -> tensor<8x4xf16, #compound.dims<T, D>>
  func.return %e : tensor<8x4xf16, #compound.dims<T, D>>
}

// CHECK: fuse: @embedded has 'compound.gather', and addresses in the COMET files do not depend on data; make the gathered rows an argument of the function, or compile for a GPU

// -----

func.func @gradient(%x: tensor<8x4xf16, #compound.dims<T, D>>, %ids: tensor<8xi32, #compound.dims<T>>) -> tensor<9x4xf16, #compound.dims<V, D>> {
  %g = compound.scatter_add %x, %ids into "V" : tensor<8x4xf16, #compound.dims<T, D>>, tensor<8xi32, #compound.dims<T>> -> tensor<9x4xf16, #compound.dims<V, D>>
  func.return %g : tensor<9x4xf16, #compound.dims<V, D>>
}

// CHECK: fuse: @gradient has 'compound.scatter_add', and addresses in the COMET files do not depend on data; make the summed rows an argument of the function, or compile for a GPU

// -----

func.func @truncated(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xi32, #compound.dims<M, N>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %whole = compound.cast %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xi32, #compound.dims<M, N>>
  func.return %whole : tensor<4x8xi32, #compound.dims<M, N>>
}

// CHECK: fuse: the cast %whole makes integers of floats, and no unit of an accelerator truncates; compute with floats, or compile for a GPU

// -----

func.func @two_types(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> (tensor<4x8xf32, #compound.dims<M, N>>, tensor<4x8xf16, #compound.dims<M, N>>) {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %narrow = compound.cast %e : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
  func.return %e, %narrow : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4x8xf16, #compound.dims<M, N>>
}

// CHECK: fuse: the caller reads the cast %narrow, and accelerators cast only operands of compute ops, and results without other uses; return the value before the cast

// -----

func.func @padded(%x: tensor<6x4xf32, #compound.dims<M, N>>) -> tensor<8x4xf32, #compound.dims<M, N>> {
  %y = compound.pad %x <0.0 from M = 6> : tensor<6x4xf32, #compound.dims<M, N>> -> tensor<8x4xf32, #compound.dims<M, N>>
  func.return %y : tensor<8x4xf32, #compound.dims<M, N>>
}

// CHECK: fuse: @padded returns %y, an argument, and accelerators have no operation that only stores one; return computed values only
