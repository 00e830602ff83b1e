// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!VD = tensor<9x4xf32, #compound.dims<V, D>>
!PVD = tensor<5x9x4xf16, #compound.dims<P, V, D>>
!T = tensor<7xi32, #compound.dims<T>>
!BT = tensor<2x3xi32, #compound.dims<B, T>>
!ONE = tensor<i32, #compound.dims<>>
// CHECK-LABEL: func.func @gather
func.func @gather(%a: !VD, %b: !PVD, %t: !T, %bt: !BT, %one: !ONE) {
  // CHECK: compound.gather %a, %t along "V" {note = "kept"} :
  %r = compound.gather %a, %t along "V" {note = "kept"} : !VD, !T -> tensor<7x4xf32, #compound.dims<T, D>>
  // CHECK-NEXT: compound.gather %b, %bt along "V" :
  %s = compound.gather %b, %bt along "V" : !PVD, !BT -> tensor<5x2x3x4xf16, #compound.dims<P, B, T, D>>
  // CHECK-NEXT: compound.gather %a, %t along "V" own :
  %own = compound.gather %a, %t along "V" own : !VD, !T -> tensor<7x4xf32, #compound.dims<T, D>>
  // CHECK-NEXT: compound.gather %b, %t along "D" :
  %u = compound.gather %b, %t along "D" : !PVD, !T -> tensor<5x9x7xf16, #compound.dims<P, V, T>>
  // CHECK-NEXT: compound.gather %a, %one along "V" :
  %v = compound.gather %a, %one along "V" : !VD, !ONE -> tensor<4xf32, #compound.dims<D>>
  %c = compound.rename %bt : !BT -> tensor<2x3xi32, #compound.dims<B, S>>
  // CHECK: compound.gather %t, %c along "T" :
  %w = compound.gather %t, %c along "T" : !T, tensor<2x3xi32, #compound.dims<B, S>> -> tensor<2x3xi32, #compound.dims<B, S>>
  %x = compound.index : tensor<7xi64, #compound.dims<T>>
  // CHECK: compound.gather %a, %x along "V" :
  %y = compound.gather %a, %x along "V" : !VD, tensor<7xi64, #compound.dims<T>> -> tensor<7x4xf32, #compound.dims<T, D>>
  func.return
}

// CHECK-GENERIC: "compound.gather"(%a, %t) <{dim = "V"}> {note = "kept"} :
// CHECK-GENERIC: "compound.gather"(%b, %bt) <{dim = "V"}> :
