// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

%a = "test.op"() : () -> tensor<4x8xf16, #compound.dims<M, K>>
%b = "test.op"() : () -> tensor<8x2xf16, #compound.dims<K, N>>
// CHECK: 'compound.contract' op result has dimension P, which no operand has
%c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>> -> tensor<4x2xf16, #compound.dims<M, P>>

// -----

%a = "test.op"() : () -> tensor<4x8xf16, #compound.dims<M, K>>
%b = "test.op"() : () -> tensor<8x2xf16, #compound.dims<K, N>>
// CHECK: 'compound.contract' op result has extent 3 for dimension N, the operands have 2
%c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>> -> tensor<4x3xf16, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf16, #compound.dims<M, K>>
%b = "test.op"() : () -> tensor<7x2xf16, #compound.dims<K, N>>
// CHECK: 'compound.contract' op dimension K has extent 8 and 7; operands that share a dimension share its extent
%c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<7x2xf16, #compound.dims<K, N>> -> tensor<4x2xf16, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf16, #compound.dims<M, K>>
%b = "test.op"() : () -> tensor<8x2xf32, #compound.dims<K, N>>
// CHECK: 'compound.contract' op mixes element types f16 and f32; make the conversion explicit with compound.cast
%c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf32, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf16, #compound.dims<M, K>>
%b = "test.op"() : () -> tensor<8x2xf16, #compound.dims<K, N>>
// CHECK: 'compound.contract' op sums dimension N, which only one operand has; keep it in the result, or reduce that operand first
%c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>> -> tensor<4xf16, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, K>>
// CHECK: 'compound.contract' op accumulates f32 in f16; the accumulator has the operands' type or a wider one
%c = compound.contract %a, %a : tensor<4x8xf32, #compound.dims<M, K>>, tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4xf16, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32>
// CHECK: tensor<4x8xf32> has no named dimensions; run decompose, or write #compound.dims<..> into the type
%c = compound.reduce add %a : tensor<4x8xf32> -> tensor<4xf32, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M>>
// CHECK: tensor<4x8xf32, #compound.dims<M>> names 1 dimensions for 2 axes
%c = compound.reduce add %a : tensor<4x8xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// -----

%a = "test.op"() : () -> f32
// CHECK: expected a tensor with named dimensions, got f32
%c = compound.reduce add %a : f32 -> tensor<4xf32, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xi1, #compound.dims<M, N>>
// CHECK: 'compound.reduce' op add of conditions; reduce numbers, which compound.cast makes of i1
%c = compound.reduce add %a : tensor<4x8xi1, #compound.dims<M, N>> -> tensor<4xi1, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xi8, #compound.dims<M, N>>
// CHECK: 'compound.reduce' op add of bytes; reduce numbers, which compound.cast makes of i8
%c = compound.reduce add %a : tensor<4x8xi8, #compound.dims<M, N>> -> tensor<4xi8, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xi32, #compound.dims<M, N>>
// CHECK: 'compound.reduce' op mixes element types i32 and i64; make the conversion explicit with compound.cast
%c = compound.reduce add %a : tensor<4x8xi32, #compound.dims<M, N>> -> tensor<4xi64, #compound.dims<M>>

// -----

// CHECK: dimension M appears twice in one type; give one of its axes another name with compound.rename
%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.reduce' op reduces nothing: the result has every dimension of the operand
%c = compound.reduce add %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.map' op sub takes 2 operand(s), got 1
%c = compound.map sub %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.map' op result lacks dimension N of an operand; use compound.reduce to drop a dimension
%c = compound.map exp %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.cast' op changes only the element type
%c = compound.cast %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x7xf16, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.cast' op keeps the order of dimensions
%c = compound.cast %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<N, M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: tensor<4x8xi16, #compound.dims<M, N>> is not a tensor of floats
%c = compound.cast %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xi16, #compound.dims<M, N>>

// -----

%a = "test.op"() : () -> tensor<4xi32, #compound.dims<M>>
// CHECK: 'compound.cast' op makes numbers, got i1; conditions are made by comparisons, as of compound.map eq
%c = compound.cast %a : tensor<4xi32, #compound.dims<M>> -> tensor<4xi1, #compound.dims<M>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op mixes element types f32 and f16
%c = compound.rename %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<P, N>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op keeps shape and level
%c = compound.rename %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<8x4xf32, #compound.dims<P, Q>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N @OB>>
// CHECK: 'compound.rename' op keeps shape and level
%c = compound.rename %a : tensor<4x8xf32, #compound.dims<M, N @OB>> -> tensor<4x8xf32, #compound.dims<P, Q @GB>>

// -----

// CHECK: tensor<4xf32> has no named dimensions
%c = compound.fill 1.0 : tensor<4xf32>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.extent' op operand has no dimension K
%c = compound.extent "K" of %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<f32, #compound.dims<>>

// -----

%a = "test.op"() : () -> tensor<4x8xf32, #compound.dims<M, N>>
// CHECK: 'compound.extent' op result is of rank 0
%c = compound.extent "N" of %a : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>

// -----

// CHECK: 'compound.index' op result has one dimension, got tensor<4x2xf32, #compound.dims<M, N>>
%n = compound.index of 8 over ["x"] : tensor<4x2xf32, #compound.dims<M, N>>

// -----

// CHECK: 'compound.index' op says both the whole extent and the axes, or none
%n = "compound.index"() <{whole = 8 : i64}> : () -> tensor<4xf32, #compound.dims<M>>

// -----

// CHECK: 'compound.index' op counts a positive extent
%n = compound.index of 0 over ["x"] : tensor<4xf32, #compound.dims<M>>

// -----

%n = "test.op"() : () -> tensor<4xi32, #compound.dims<M>>
// CHECK: 'compound.rename' op mixes element types i32 and f32; make the conversion explicit with compound.cast
%r = compound.rename %n : tensor<4xi32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<N>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op splits K, which tensor<4x6xf32, #compound.dims<M, N>> does not have
%r = compound.rename %x split "K" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x2x3xf32, #compound.dims<M, P, Q>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op keeps shape and level
%r = compound.rename %x split "N" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x4x2xf32, #compound.dims<M, P, Q>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op merges K, which tensor<4x6xf32, #compound.dims<M, N>> does not have
%r = compound.rename %x merge "K" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<24xf32, #compound.dims<P>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op merges N, after which tensor<4x6xf32, #compound.dims<M, N>> has no dimension
%r = compound.rename %x merge "N" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<24xf32, #compound.dims<P>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op keeps shape and level
%r = compound.rename %x merge "M" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<25xf32, #compound.dims<P>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op keeps shape and level
%r = compound.rename %x merge "M" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x6xf32, #compound.dims<P, N>>

// -----

%x = "test.op"() : () -> tensor<4x6xf32, #compound.dims<M, N>>
// CHECK: 'compound.rename' op splits or merges, not both
%r = compound.rename %x split "N" merge "M" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<8x3xf32, #compound.dims<P, N>>

// -----

%x = "test.op"() : () -> tensor<4xf32, #compound.dims<M>>
// CHECK: 'compound.map' op ge has a condition, a tensor of i1, as its result, got tensor<4xf32, #compound.dims<M>>
%r = compound.map ge %x, %x : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// -----

%x = "test.op"() : () -> tensor<4xf32, #compound.dims<M>>
// CHECK: 'compound.map' op select has a condition, a tensor of i1, as its first operand, got tensor<4xf32, #compound.dims<M>>
%r = compound.map select %x, %x, %x : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// -----

%x = "test.op"() : () -> tensor<4xf32, #compound.dims<M>>
%c = "test.op"() : () -> tensor<4xi1, #compound.dims<M>>
// CHECK: 'compound.map' op select takes 3 operand(s), got 2
%r = compound.map select %c, %x : tensor<4xi1, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// -----

%x = "test.op"() : () -> tensor<4xf32, #compound.dims<M>>
%h = "test.op"() : () -> tensor<4xf16, #compound.dims<M>>
%c = "test.op"() : () -> tensor<4xi1, #compound.dims<M>>
// CHECK: 'compound.map' op mixes element types f32 and f16; make the conversion explicit with compound.cast
%r = compound.map select %c, %x, %h : tensor<4xi1, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>, tensor<4xf16, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// -----

%x = "test.op"() : () -> tensor<4xf32, #compound.dims<M>>
%n = "test.op"() : () -> tensor<4xi32, #compound.dims<M>>
// CHECK: 'compound.map' op mixes element types f32 and i32; make the conversion explicit with compound.cast
%r = compound.map gt %x, %n : tensor<4xf32, #compound.dims<M>>, tensor<4xi32, #compound.dims<M>> -> tensor<4xi1, #compound.dims<M>>

// -----

%c = "test.op"() : () -> tensor<4xi1, #compound.dims<M>>
// CHECK: tensor<4xi1, #compound.dims<M>> is not a tensor of floats; make one with compound.cast
%r = compound.map add %c, %c : tensor<4xi1, #compound.dims<M>>, tensor<4xi1, #compound.dims<M>> -> tensor<4xi1, #compound.dims<M>>

// -----

!M = tensor<0xf32, #compound.dims<M>>
%a = "test.op"() : () -> !M
// CHECK: tensor<0xf32, #compound.dims<M>> has extents that are not static and positive
%b = compound.map exp %a : !M -> !M
