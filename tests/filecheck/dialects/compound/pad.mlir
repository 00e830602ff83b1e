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

// CHECK-GENERIC: "compound.pad"(%a) <{padding = #compound.padding<0.0 from M = 4, N = 3>}> {note = "kept"} :
// CHECK-GENERIC: "compound.pad"(%b) <{padding = #compound.padding<-inf from N = 3>}> :
// CHECK-GENERIC: "compound.slice"(%d) :
