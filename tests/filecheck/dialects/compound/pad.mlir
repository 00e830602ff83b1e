// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!MN = tensor<4x3xf32, #compound.dims<M, N>>
!LARGE = tensor<8x4xf32, #compound.dims<M, N>>
// CHECK-LABEL: func.func @pad
func.func @pad(%a: !MN) -> !MN {
  // CHECK: compound.pad %a <0.0 from M = 4, N = 3> {note = "kept"} :
  %b = compound.pad %a <0.0 from M = 4, N = 3> {note = "kept"} : !MN -> !LARGE
  // CHECK-NEXT: compound.pad %b <-inf from N = 3> :
  %c = compound.pad %b <-inf from N = 3> : !LARGE -> !LARGE
  // CHECK-NEXT: compound.pad %c <1.5e-08 from M = 4> :
  %d = compound.pad %c <1.5e-08 from M = 4> : !LARGE -> !LARGE
  // CHECK-NEXT: compound.slice %d :
  %e = compound.slice %d : !LARGE -> !MN
  func.return %e : !MN
}

// CHECK-LABEL: func.func @parts
func.func @parts(%a: !LARGE, %b: !MN) -> tensor<8x4xf32, #compound.dims<M, N>> {
  // CHECK: compound.slice %a "M"[3, 5] {note = "kept"} :
  %c = compound.slice %a "M" [3, 5] {note = "kept"} : !LARGE -> tensor<5x4xf32, #compound.dims<M, N>>
  // CHECK-NEXT: compound.slice %c "M"[0, 5] :
  %d = compound.slice %c "M" [0, 5] : tensor<5x4xf32, #compound.dims<M, N>> -> tensor<5x4xf32, #compound.dims<M, N>>
  // CHECK-NEXT: compound.slice %a "M"[7, 1] :
  %e = compound.slice %a "M" [7, 1] : !LARGE -> tensor<1x4xf32, #compound.dims<M, N>>
  // CHECK-NEXT: compound.concat "M" %e, %d, %e, %e {note = "kept"} :
  %f = compound.concat "M" %e, %d, %e, %e {note = "kept"} : tensor<1x4xf32, #compound.dims<M, N>>,
    tensor<5x4xf32, #compound.dims<M, N>>, tensor<1x4xf32, #compound.dims<M, N>>,
    tensor<1x4xf32, #compound.dims<M, N>> -> tensor<8x4xf32, #compound.dims<M, N>>
  func.return %f : !LARGE
}

// CHECK-GENERIC: "compound.pad"(%a) <{padding = #compound.padding<0.0 from M = 4, N = 3>}> {note = "kept"} :
// CHECK-GENERIC: "compound.pad"(%b) <{padding = #compound.padding<-inf from N = 3>}> :
// CHECK-GENERIC: "compound.slice"(%d) :
// CHECK-GENERIC: "compound.slice"(%a) <{dim = "M", offset = 3 : i64, size = 5 : i64}> {note = "kept"} :
// CHECK-GENERIC: "compound.concat"(%e, %d, %e, %e) <{dim = "M"}> {note = "kept"} :
