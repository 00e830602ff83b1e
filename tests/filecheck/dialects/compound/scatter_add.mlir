// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!TD = tensor<7x4xf32, #compound.dims<T, D>>
!VD = tensor<9x4xf32, #compound.dims<V, D>>
!PBTD = tensor<5x2x3x4xf16, #compound.dims<P, B, T, D>>
!BT = tensor<2x3xi64, #compound.dims<B, T>>
%x, %i, %y, %j, %z, %one = "test.op"() : () -> (!TD, tensor<7xi32, #compound.dims<T>>, !PBTD, !BT, tensor<4xf32, #compound.dims<D>>, tensor<i32, #compound.dims<>>)
// CHECK: compound.scatter_add %x, %i into "V" {note = "kept"} :
%r = compound.scatter_add %x, %i into "V" {note = "kept"} : !TD, tensor<7xi32, #compound.dims<T>> -> !VD
// CHECK-NEXT: compound.scatter_add %y, %j into "V" :
%s = compound.scatter_add %y, %j into "V" : !PBTD, !BT -> tensor<5x9x4xf16, #compound.dims<P, V, D>>
// CHECK-NEXT: compound.scatter_add %z, %one into "V" :
%t = compound.scatter_add %z, %one into "V" : tensor<4xf32, #compound.dims<D>>, tensor<i32, #compound.dims<>> -> !VD
// CHECK-GENERIC: "compound.scatter_add"(%x, %i) <{dim = "V"}> {note = "kept"} :
