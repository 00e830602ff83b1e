// RUN: comet-opt %s --split-input-file -p canonicalize | filecheck %s

func.func @neutral(%x: tensor<4xf16, #compound.dims<M>>) -> (tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>) {
  %zero = compound.fill 0.0 : tensor<4xf16, #compound.dims<M>>
  %one = compound.fill 1.0 : tensor<f16, #compound.dims<>>
  %low = compound.fill -65504.0 : tensor<4xf16, #compound.dims<M>>
  %add = compound.map add %zero, %x : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  %sub = compound.map sub %x, %zero : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  %mult = compound.map mult %one, %x : tensor<f16, #compound.dims<>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  %div = compound.map div %x, %one : tensor<4xf16, #compound.dims<M>>, tensor<f16, #compound.dims<>> -> tensor<4xf16, #compound.dims<M>>
  %max = compound.map max %low, %x : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  func.return %add, %sub, %mult, %div, %max : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>
}

// CHECK:      func.func @neutral
// CHECK-NEXT:   func.return %x, %x, %x, %x, %x

// -----

// A term with the factor 0 is dropped; what is a factor 0 by itself keeps its dimensions.

func.func @absorbing(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) {
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %mult = compound.map mult %x, %zero : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  %div = compound.map div %zero, %x : tensor<f32, #compound.dims<>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %more = compound.map mult %y, %mult : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %add = compound.map add %more, %y : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %sub = compound.map sub %y, %div : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %add, %sub, %mult : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
}

// CHECK:      func.func @absorbing
// CHECK-NEXT:   %zero = compound.fill
// CHECK-NEXT:   %mult = compound.map mult %x, %zero
// CHECK-NEXT:   func.return %y, %y, %mult

// -----

// What is no neutral element, or would change the type, stays.

func.func @kept(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<f32, #compound.dims<>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) {
  %zero = compound.fill 0.0 : tensor<4xf32, #compound.dims<M>>
  %low = compound.fill -65504.0 : tensor<4xf32, #compound.dims<M>>
  %sub = compound.map sub %zero, %x : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %div = compound.map div %x, %zero : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %max = compound.map max %low, %x : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %add = compound.map add %zero, %y : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  func.return %sub, %div, %max, %add : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
}

// CHECK:      func.func @kept
// CHECK:        %sub = compound.map sub
// CHECK-NEXT:   %div = compound.map div
// CHECK-NEXT:   %max = compound.map max
// CHECK-NEXT:   %add = compound.map add

// -----

// The highest finite number is neutral for min; two unknown operands both count.

func.func @min(%x: tensor<4xf16, #compound.dims<M>>, %y: tensor<4xf16, #compound.dims<M>>) -> (tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>) {
  %high = compound.fill 65504.0 : tensor<4xf16, #compound.dims<M>>
  %right = compound.map min %x, %high : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  %left = compound.map min %high, %x : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  %both = compound.map min %x, %y : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
  func.return %right, %left, %both : tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>>
}

// CHECK:      func.func @min
// CHECK-NEXT:   %both = compound.map min %x, %y
// CHECK-NEXT:   func.return %x, %x, %both

// -----

// What is computed of constants alone is a constant, unless it is infinite.

func.func @constants() -> (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) {
  %half = compound.fill 0.5 : tensor<4xf16, #compound.dims<M>>
  %two = compound.fill 2.0 : tensor<f32, #compound.dims<>>
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %cast = compound.cast %half : tensor<4xf16, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %sum = compound.map add %cast, %two : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  %div = compound.map div %cast, %zero : tensor<4xf32, #compound.dims<M>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<M>>
  func.return %cast, %sum, %div : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>
}

// CHECK:      func.func @constants
// CHECK-NEXT:   %zero = compound.fill 0.000000e+00
// CHECK-NEXT:   %cast = compound.fill 5.000000e-01 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:   %sum = compound.fill 2.500000e+00 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:   %div = compound.map div %cast, %zero

// -----

// The cast of a constant is rounded towards zero, unless no integer is left.

func.func @integers() -> (tensor<4xi64, #compound.dims<M>>, tensor<4xi64, #compound.dims<M>>) {
  %less = compound.fill -1.5 : tensor<4xf32, #compound.dims<M>>
  %least = compound.fill -inf : tensor<4xf32, #compound.dims<M>>
  %one = compound.cast %less : tensor<4xf32, #compound.dims<M>> -> tensor<4xi64, #compound.dims<M>>
  %none = compound.cast %least : tensor<4xf32, #compound.dims<M>> -> tensor<4xi64, #compound.dims<M>>
  func.return %one, %none : tensor<4xi64, #compound.dims<M>>, tensor<4xi64, #compound.dims<M>>
}

// CHECK:      func.func @integers
// CHECK-NEXT:   %least = compound.fill -inf
// CHECK-NEXT:   %one = compound.fill -1.000000e+00 : tensor<4xi64, #compound.dims<M>>
// CHECK-NEXT:   %none = compound.cast %least

// -----

// A comparison of constants is a constant, and a selection by it one of its operands.

func.func @conditions(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>, %n: tensor<4xi32, #compound.dims<M>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xi32, #compound.dims<M>>) {
  %one = compound.fill 1.0 : tensor<i32, #compound.dims<>>
  %yes = compound.map ge %one, %one : tensor<i32, #compound.dims<>>, tensor<i32, #compound.dims<>> -> tensor<i1, #compound.dims<>>
  %no = compound.map gt %one, %one : tensor<i32, #compound.dims<>>, tensor<i32, #compound.dims<>> -> tensor<i1, #compound.dims<>>
  %first = compound.map select %yes, %x, %y : tensor<i1, #compound.dims<>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %second = compound.map select %no, %x, %y : tensor<i1, #compound.dims<>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %same = compound.map mult %n, %one : tensor<4xi32, #compound.dims<M>>, tensor<i32, #compound.dims<>> -> tensor<4xi32, #compound.dims<M>>
  func.return %first, %second, %same : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xi32, #compound.dims<M>>
}

// CHECK:      func.func @conditions
// CHECK-NEXT:   func.return %x, %y, %n

// -----

// No kernel stores positions or views, so what returns them copies them.

func.func @returned(%x: tensor<4xf32, #compound.dims<M>>) -> (tensor<4xi32, #compound.dims<M>>, tensor<4xf32, #compound.dims<N>>) {
  %none = compound.fill 0.0 : tensor<i32, #compound.dims<>>
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %i = compound.index : tensor<4xi32, #compound.dims<M>>
  %y = compound.rename %x {M = "N"} : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<N>>
  %positions = compound.map add %i, %none : tensor<4xi32, #compound.dims<M>>, tensor<i32, #compound.dims<>> -> tensor<4xi32, #compound.dims<M>>
  %view = compound.map add %y, %zero : tensor<4xf32, #compound.dims<N>>, tensor<f32, #compound.dims<>> -> tensor<4xf32, #compound.dims<N>>
  func.return %positions, %view : tensor<4xi32, #compound.dims<M>>, tensor<4xf32, #compound.dims<N>>
}

// CHECK:      func.func @returned
// CHECK-NEXT:   %i = compound.index
// CHECK-NEXT:   %y = compound.rename %x
// CHECK-NEXT:   %positions = compound.map copy %i
// CHECK-NEXT:   %view = compound.map copy %y
// CHECK-NEXT:   func.return %positions, %view
