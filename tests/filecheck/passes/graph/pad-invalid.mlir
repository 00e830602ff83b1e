// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'pad{to="N=4,P=6"}' | filecheck %s

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, K>>) -> tensor<4x8xf32, #compound.dims<M, K>> {
  %m = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x8xf32, #compound.dims<M, K>>
  func.return %m : tensor<4x8xf32, #compound.dims<M, K>>
}

// CHECK: pad: no value has the dimension N; the dimensions of the module are K, M

// -----

func.func @f(%x: tensor<5x3xf32, #compound.dims<N, P>>) -> tensor<5x3xf32, #compound.dims<N, P>> {
  %m = compound.map exp %x : tensor<5x3xf32, #compound.dims<N, P>> -> tensor<5x3xf32, #compound.dims<N, P>>
  func.return %m : tensor<5x3xf32, #compound.dims<N, P>>
}

// CHECK: pad: N = 5 of @f cannot be padded to 4; choose an extent that is as large, of a dimension that has one

// -----

func.func @f(%x: tensor<3xf32, #compound.dims<N>>, %y: tensor<2x5xf32, #compound.dims<N, P>>) -> (tensor<3xf32, #compound.dims<N>>, tensor<2x5xf32, #compound.dims<N, P>>) {
  %a = compound.map exp %x : tensor<3xf32, #compound.dims<N>> -> tensor<3xf32, #compound.dims<N>>
  %b = compound.map exp %y : tensor<2x5xf32, #compound.dims<N, P>> -> tensor<2x5xf32, #compound.dims<N, P>>
  func.return %a, %b : tensor<3xf32, #compound.dims<N>>, tensor<2x5xf32, #compound.dims<N, P>>
}

// CHECK: pad: N = 3 and 2 of @f cannot be padded to 4

// -----

func.func @f(%x: tensor<3xf32, #compound.dims<N>>) -> tensor<3xf32, #compound.dims<P>> {
  %m = compound.rename %x : tensor<3xf32, #compound.dims<N>> -> tensor<3xf32, #compound.dims<P>>
  func.return %m : tensor<3xf32, #compound.dims<P>>
}

// CHECK: pad: N and P of @f are one dimension by two names and cannot be 4 and 6; name one of them

// -----

func.func @f(%x: tensor<3x5xf32, #compound.dims<N, P>>) -> tensor<5xf32, #compound.dims<P>> {
  %low = compound.fill -1.0e30 : tensor<5xf32, #compound.dims<P>>
  %m = compound.fold over "N" ins(%x : tensor<3x5xf32, #compound.dims<N, P>>) init(%low : tensor<5xf32, #compound.dims<P>>) step {
  ^bb0(%c: tensor<3x5xf32, #compound.dims<N, P>>, %old: tensor<5xf32, #compound.dims<P>>):
    %top = compound.reduce max %c : tensor<3x5xf32, #compound.dims<N, P>> -> tensor<5xf32, #compound.dims<P>>
    %now = compound.map max %old, %top : tensor<5xf32, #compound.dims<P>>, tensor<5xf32, #compound.dims<P>> -> tensor<5xf32, #compound.dims<P>>
    compound.yield %now : tensor<5xf32, #compound.dims<P>>
  } merge {
  ^bb1(%one: tensor<5xf32, #compound.dims<P>>, %other: tensor<5xf32, #compound.dims<P>>):
    %now = compound.map max %one, %other : tensor<5xf32, #compound.dims<P>>, tensor<5xf32, #compound.dims<P>> -> tensor<5xf32, #compound.dims<P>>
    compound.yield %now : tensor<5xf32, #compound.dims<P>>
  } -> tensor<5xf32, #compound.dims<P>>
  func.return %m : tensor<5xf32, #compound.dims<P>>
}

// CHECK: pad: 'compound.fold' of @f has the dimension N, and what its padding would hold is not known; pad before stream and split, or other dimensions

// -----

func.func @f(%x: tensor<3x5xf32, #compound.dims<N, P>>) -> tensor<3x5xf32, #compound.dims<N, P>> {
  %m = compound.map exp %x {collective.shard = {N = ["x"]}} : tensor<3x5xf32, #compound.dims<N, P>> -> tensor<3x5xf32, #compound.dims<N, P>>
  func.return %m : tensor<3x5xf32, #compound.dims<N, P>>
}

// CHECK: pad: @f is sharded already; run pad before distribute
