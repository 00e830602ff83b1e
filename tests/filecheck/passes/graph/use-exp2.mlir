// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},use-exp2' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},use-exp2{exp=exp2}' | filecheck %s --check-prefix=ALL
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},use-exp2{exp=exp}' | filecheck %s --check-prefix=NONE

// The scale of scores takes the factor log2 e = 1.4427, and so does what hides some.

func.func @softmax(%c: tensor<4x8xf32, #compound.dims<M, N>>, %v: tensor<4x8xi1, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %scale = compound.fill 0.5 : tensor<f32, #compound.dims<>>
  %hidden = compound.fill -3.0e+38 : tensor<f32, #compound.dims<>>
  %x = compound.map mult %c, %scale : tensor<4x8xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %y = compound.map select %v, %x, %hidden : tensor<4x8xi1, #compound.dims<M, N>>, tensor<4x8xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %m = compound.reduce max %y : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map sub %y, %m : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %e = compound.map exp %s : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:   %scale = compound.fill 0.72134752
// CHECK-NEXT:   %hidden = compound.fill -3.4028234663852886e+38
// CHECK-NEXT:   %x = compound.map mult %c, %scale
// CHECK-NEXT:   %y = compound.map select %v, %x, %hidden
// CHECK-NEXT:   %m = compound.reduce max %y
// CHECK-NEXT:   %s = compound.map sub %y, %m
// CHECK-NEXT:   %e = compound.map exp2 %s
// ALL:          %e = compound.map exp2 %s
// NONE:         %e = compound.map exp %s

// A negation becomes a product; a divisor is divided by the factor.

func.func @negated(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %two = compound.fill 2.0 : tensor<f32, #compound.dims<>>
  %n = compound.map neg %x : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %h = compound.map div %y, %two : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  %s = compound.map add %n, %h : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %e = compound.map exp %s : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %e : tensor<4xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @negated
// CHECK-NEXT:   %two = compound.fill 1.3862943
// CHECK-NEXT:   %n = compound.fill -1.4426950
// CHECK-NEXT:   %n_1 = compound.map mult %x, %n
// CHECK-NEXT:   %h = compound.map div %y, %two
// CHECK-NEXT:   %s = compound.map add %n_1, %h
// CHECK-NEXT:   %e = compound.map exp2 %s

// Without a constant what the exponential reads is multiplied: a product that overflows gives 0 or infinity, too.

func.func @plain(%x: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %e = compound.map exp %x : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %e : tensor<4xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @plain
// CHECK-NEXT:   %0 = compound.fill 1.4426950
// CHECK-NEXT:   %x_1 = compound.map mult %x, %0
// CHECK-NEXT:   %e = compound.map exp2 %x_1
// NONE-LABEL: func.func @plain
// NONE-NEXT:    %e = compound.map exp %x
