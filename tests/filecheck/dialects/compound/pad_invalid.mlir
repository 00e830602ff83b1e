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
