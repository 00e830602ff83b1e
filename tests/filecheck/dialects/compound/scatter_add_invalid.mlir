// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!T = tensor<7xf32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op has ids in i32 or i64, got tensor<7xf32, #compound.dims<T>>; convert them before the function is called
%r = compound.scatter_add %x, %i into "V" : !TD, !T -> tensor<9x4xf32, #compound.dims<V, D>>

// -----

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!T = tensor<7xi32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op adds into V, which tensor<9x4xf32, #compound.dims<W, D>> does not have
%r = compound.scatter_add %x, %i into "V" : !TD, !T -> tensor<9x4xf32, #compound.dims<W, D>>

// -----

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!T = tensor<7xi32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op result and ids both have dimension T; give one of them another name with compound.rename
%r = compound.scatter_add %x, %i into "T" : !TD, !T -> tensor<9x4xf32, #compound.dims<T, D>>

// -----

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!T = tensor<7xi32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op ids and result are at one level
%r = compound.scatter_add %x, %i into "V" : !TD, !T -> tensor<9x4xf32, #compound.dims<V, D @HBM>>

// -----

!TD = tensor<7x4xbf16, #compound.dims<T, D>>
!T = tensor<7xi32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op adds f32, f16, i32 or i64, not bf16; cast the values
%r = compound.scatter_add %x, %i into "V" : !TD, !T -> tensor<9x4xbf16, #compound.dims<V, D>>

// -----

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!T = tensor<7xi32, #compound.dims<T>>
%x, %i = "test.op"() : () -> (!TD, !T)
// CHECK: 'compound.scatter_add' op values are tensor<7x4xf16, #compound.dims<T, D>>, with the dimensions of ids in place of V, not tensor<7x4xf32, #compound.dims<T, D>>
%r = compound.scatter_add %x, %i into "V" : !TD, !T -> tensor<9x4xf16, #compound.dims<V, D>>
