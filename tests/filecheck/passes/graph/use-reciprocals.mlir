// RUN: comet-opt %s -p use-reciprocals | filecheck %s

// A softmax divides by one sum a row; both quotients share its reciprocal.

func.func @softmax(%e: tensor<4x8xf32, #compound.dims<M, N>>, %l: tensor<4xf32, #compound.dims<M>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %p = compound.map div %e, %l : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %q = compound.map div %p, %l : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %q : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    %0 = compound.fill 1.000000e+00 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:    %l_inverse = compound.map div %0, %l
// CHECK-NEXT:    %p = compound.map mult %e, %l_inverse
// CHECK-NEXT:    %q = compound.map mult %p, %l_inverse

// LayerNorm divides by a root.

func.func @norm(%x: tensor<4x8xf32, #compound.dims<M, N>>, %v: tensor<4xf32, #compound.dims<M>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %r = compound.map sqrt %v : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %y = compound.map div %x, %r : tensor<4x8xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %y : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @norm
// CHECK-NEXT:    %r_inverse = compound.map rsqrt %v
// CHECK-NEXT:    %y = compound.map mult %x, %r_inverse

// A constant has its reciprocal here; zero has none.

func.func @constants(%x: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %n = compound.fill 8.0 : tensor<f32, #compound.dims<>>
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %mean = compound.map div %x, %n : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  %y = compound.map div %mean, %zero : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  func.return %y : tensor<4xf32, #compound.dims<M>>
}

// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %n_inverse = compound.fill 1.250000e-01
// CHECK-NEXT:    %zero = compound.fill 0.000000e+00
// CHECK-NEXT:    %mean = compound.map mult %x, %n_inverse
// CHECK-NEXT:    %y = compound.map div %mean, %zero

// A divisor of its own for each element, and short floats.

func.func @others(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>, %h: tensor<4x8xbf16, #compound.dims<M, N>>, %l: tensor<4xbf16, #compound.dims<M>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<4x8xbf16, #compound.dims<M, N>>) {
  %q = compound.map div %x, %y : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %p = compound.map div %h, %l : tensor<4x8xbf16, #compound.dims<M, N>>, tensor<4xbf16, #compound.dims<M>> -> tensor<4x8xbf16, #compound.dims<M, N>>
  func.return %q, %p : tensor<4xf32, #compound.dims<M>>, tensor<4x8xbf16, #compound.dims<M, N>>
}

// CHECK-LABEL: func.func @others
// CHECK-NEXT:    %q = compound.map div %x, %y
// CHECK-NEXT:    %p = compound.map div %h, %l
