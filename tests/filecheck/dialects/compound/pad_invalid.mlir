// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.pad' op changes only extents: names, element type and level stay
%b = compound.pad %a <0.0 from N = 3> : !MN -> tensor<4x8xf16, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.pad' op operand has no dimension K
%b = compound.pad %a <0.0 from K = 3> : !MN -> !MN

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.pad' op pads M from 4 to 8; the padding begins at 4, and makes it larger
%b = compound.pad %a <0.0 from N = 3> : !MN -> tensor<8x3xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.pad' op pads N from 3 to 2; the padding begins at 3, and makes it larger
%b = compound.pad %a <0.0 from N = 3> : !MN -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

// CHECK: 'compound.padding' names dimensions, each once
"test.op"() {a = #compound.padding<0.0 from N = 3, N = 4>} : () -> ()

// -----

// CHECK: 'compound.padding' has positive extents
"test.op"() {a = #compound.padding<0.0 from N = 0>} : () -> ()

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op takes 4 of 3 positions along N; compound.pad makes a dimension larger
%b = compound.slice %a : !MN -> tensor<4x4xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op changes only extents: names, element type and level stay
%b = compound.slice %a : !MN -> tensor<4x2xf32, #compound.dims<M, K>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op has a dimension, a first position and a size, or none of them
%b = "compound.slice"(%a) <{dim = "N"}> : (!MN) -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op operand has no dimension K
%b = compound.slice %a "K" [0, 3] : !MN -> !MN

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op takes 1 positions along N, and its result is tensor<4x2xf32, #compound.dims<M, N>>
%b = compound.slice %a "N" [0, 1] : !MN -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op takes 3 positions along N, and its result is tensor<3x3xf32, #compound.dims<M, N>>
%b = compound.slice %a "N" [0, 3] : !MN -> tensor<3x3xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op takes the positions from 2 to 3 along N, which has 3
%b = compound.slice %a "N" [2, 2] : !MN -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.slice' op takes the positions from -1 to 0 along N, which has 3
%b = compound.slice %a "N" [-1, 2] : !MN -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.concat' op joins at least one value
%b = "compound.concat"() <{dim = "N"}> : () -> !MN

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.concat' op result has no dimension K
%b = compound.concat "K" %a, %a : !MN, !MN -> !MN

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.concat' op changes only extents: names, element type and level stay
%b = compound.concat "N" %a, %a : !MN, !MN -> tensor<4x6xf16, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.concat' op joins tensor<4x3xf32, #compound.dims<M, N>> along N only, and its result is tensor<5x6xf32, #compound.dims<M, N>>
%b = compound.concat "N" %a, %a : !MN, !MN -> tensor<5x6xf32, #compound.dims<M, N>>

// -----

!MN = tensor<4x3xf32, #compound.dims<M, N>>
%a = "test.op"() : () -> !MN
// CHECK: 'compound.concat' op joins 6 positions along N, and its result has 7
%b = compound.concat "N" %a, %a : !MN, !MN -> tensor<4x7xf32, #compound.dims<M, N>>

// -----

!M = tensor<4xi32, #compound.dims<M>>
%a = "test.op"() : () -> !M
// CHECK: 'compound.pad' op -inf is not representable in i32
%b = compound.pad %a <-inf from M = 3> : !M -> !M
