// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!M = tensor<4xi32, #compound.dims<M>>
!SEED = tensor<i64, #compound.dims<>>
!SEEDS = tensor<2xi32, #compound.dims<N>>
// CHECK-LABEL: func.func @random
func.func @random(%seed: !SEED, %seeds: !SEEDS) {
  %m = compound.index : !M
  // CHECK: %u = compound.map random %seed, %m {note = "kept"} :
  %u = compound.map random %seed, %m {note = "kept"} : !SEED, !M -> tensor<4xf32, #compound.dims<M>>
  // CHECK-NEXT: %v = compound.map random %seeds, %m :
  %v = compound.map random %seeds, %m : !SEEDS, !M -> tensor<4x2xf32, #compound.dims<M, N>>
  func.return
}

// CHECK-GENERIC: "compound.map"(%seed, %m) <{kind = #compound<map_kind random>}> {note = "kept"} :
