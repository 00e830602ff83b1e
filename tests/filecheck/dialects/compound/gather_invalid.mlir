// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!T = tensor<7xf32, #compound.dims<T>>
%a, %t = "test.op"() : () -> (!VD, !T)
// CHECK: 'compound.gather' op has ids in i32 or i64, got tensor<7xf32, #compound.dims<T>>; convert them before the function is called
%r = compound.gather %a, %t along "V" : !VD, !T -> tensor<7x4xf32, #compound.dims<T, D>>

// -----

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!T = tensor<7xi32, #compound.dims<T>>
%a, %t = "test.op"() : () -> (!VD, !T)
// CHECK: 'compound.gather' op gathers along K, which tensor<9x4xf32, #compound.dims<V, D>> does not have
%r = compound.gather %a, %t along "K" : !VD, !T -> tensor<7x4xf32, #compound.dims<T, D>>

// -----

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!D = tensor<7xi32, #compound.dims<D>>
%a, %t = "test.op"() : () -> (!VD, !D)
// CHECK: 'compound.gather' op table and ids both have dimension D; give one of them another name with compound.rename
%r = compound.gather %a, %t along "V" : !VD, !D -> tensor<7x4xf32, #compound.dims<T, D>>

// -----

!VD = tensor<9x4xf32, #compound.dims<V, D @HBM>>
!T = tensor<7xi32, #compound.dims<T>>
%a, %t = "test.op"() : () -> (!VD, !T)
// CHECK: 'compound.gather' op table and ids are at one level
%r = compound.gather %a, %t along "V" : !VD, !T -> tensor<7x4xf32, #compound.dims<T, D @HBM>>

// -----

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!T = tensor<7xi32, #compound.dims<T>>
%a, %t = "test.op"() : () -> (!VD, !T)
// CHECK: 'compound.gather' op result is tensor<7x4xf32, #compound.dims<T, D>>, with the dimensions of ids in place of V, not tensor<7x4xf16, #compound.dims<T, D>>
%r = compound.gather %a, %t along "V" : !VD, !T -> tensor<7x4xf16, #compound.dims<T, D>>

// -----

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!T = tensor<7xi32, #compound.dims<T>>
%a, %t = "test.op"() : () -> (!VD, !T)
// CHECK: 'compound.gather' op result is tensor<7x4xf32, #compound.dims<T, D>>, with the dimensions of ids in place of V, not tensor<4x7xf32, #compound.dims<D, T>>
%r = compound.gather %a, %t along "V" : !VD, !T -> tensor<4x7xf32, #compound.dims<D, T>>
