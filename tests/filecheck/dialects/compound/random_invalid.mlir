// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

!M = tensor<4xi32, #compound.dims<M>>
%m = "test.op"() : () -> !M
// CHECK: 'compound.map' op random takes 2 operand(s), got 1
%u = compound.map random %m : !M -> tensor<4xf32, #compound.dims<M>>

// -----

!M = tensor<4xi32, #compound.dims<M>>
%seed = "test.op"() : () -> tensor<f32, #compound.dims<>>
%m = "test.op"() : () -> !M
// CHECK: 'compound.map' op random has seeds of i64 or i32, got tensor<f32, #compound.dims<>>
%u = compound.map random %seed, %m : tensor<f32, #compound.dims<>>, !M -> tensor<4xf32, #compound.dims<M>>

// -----

!M = tensor<4xi64, #compound.dims<M>>
%seed = "test.op"() : () -> tensor<i64, #compound.dims<>>
%m = "test.op"() : () -> !M
// CHECK: 'compound.map' op random has positions of i32, got tensor<4xi64, #compound.dims<M>>
%u = compound.map random %seed, %m : tensor<i64, #compound.dims<>>, !M -> tensor<4xf32, #compound.dims<M>>

// -----

!M = tensor<4xi32, #compound.dims<M>>
%seed = "test.op"() : () -> tensor<i64, #compound.dims<>>
%m = "test.op"() : () -> !M
// CHECK: 'compound.map' op random has results of f32, got tensor<4xf16, #compound.dims<M>>
%u = compound.map random %seed, %m : tensor<i64, #compound.dims<>>, !M -> tensor<4xf16, #compound.dims<M>>
