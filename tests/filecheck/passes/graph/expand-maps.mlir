// RUN: comet-opt %s -p expand-maps | filecheck %s

// Functions that COMET files do not have become functions that they have; what is
// sharded stays sharded, and logarithms stay.

func.func @f(%x: tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4x2xf32, #compound.dims<M, N>> {
  %n = compound.map neg %x {collective.shard = {M = ["cx"]}} : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  %r = compound.map rsqrt %n : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  %m = compound.map min %r, %x : tensor<4x2xf32, #compound.dims<M, N>>, tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  %t = compound.map tanh %m : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  %c = compound.map copy %t : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  %l = compound.map log %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  func.return %l : tensor<4x2xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @f
// CHECK-NEXT:   %number = compound.fill -1.000000e+00
// CHECK-NEXT:   %n = compound.map mult %x, %number {collective.shard = {M = ["cx"]}}
// CHECK-NEXT:   %sqrt = compound.map sqrt %n
// CHECK-NEXT:   %number_1 = compound.fill 1.000000e+00
// CHECK-NEXT:   %r = compound.map div %number_1, %sqrt
// CHECK-NEXT:   %number_2 = compound.fill -1.000000e+00
// CHECK-NEXT:   %mult = compound.map mult %r, %number_2
// CHECK-NEXT:   %number_3 = compound.fill -1.000000e+00
// CHECK-NEXT:   %mult_1 = compound.map mult %x, %number_3
// CHECK-NEXT:   %max = compound.map max %mult, %mult_1
// CHECK-NEXT:   %number_4 = compound.fill -1.000000e+00
// CHECK-NEXT:   %m = compound.map mult %max, %number_4
// CHECK-NEXT:   %number_5 = compound.fill 2.000000e+00
// CHECK-NEXT:   %mult_2 = compound.map mult %m, %number_5
// CHECK-NEXT:   %exp = compound.map exp %mult_2
// CHECK-NEXT:   %number_6 = compound.fill 1.000000e+00
// CHECK-NEXT:   %add = compound.map add %exp, %number_6
// CHECK-NEXT:   %number_7 = compound.fill 2.000000e+00
// CHECK-NEXT:   %div = compound.map div %number_7, %add
// CHECK-NEXT:   %number_8 = compound.fill 1.000000e+00
// CHECK-NEXT:   %t = compound.map sub %number_8, %div
// CHECK-NEXT:   %number_9 = compound.fill 1.000000e+00
// CHECK-NEXT:   %c = compound.map mult %t, %number_9
// CHECK-NEXT:   %l = compound.map log %c
