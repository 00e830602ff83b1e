// scopes: row M N; tile M N K
// The programs of a row all compute its exponentials, which they read again; one of them returns these.

func.func @exp_gemm(%a: $whole(MK, f16, HBM), %b: $whole(KN, f16, HBM)) -> ($whole(MK, f32, HBM), $whole(MN, f32, HBM)) {
  %e, %c = schedule.spatial on grid [g0: M = $count(M), g1: N = $count(N)] ins(%a, %b : $whole(MK, f16, HBM), $whole(KN, f16, HBM)) outs($whole(MK, f32, HBM), $whole(MN, f32, HBM)) combine ["same", "none"] {
  ^bb0(%a1: $row(MK, f16, HBM), %b1: $row(KN, f16, HBM)):
    %e1 = schedule.temporal [K = $count(K)] ins(%a1 : $row(MK, f16, HBM)) outs($row(MK, f32, HBM)) {
    ^bb1(%a2: $tile(MK, f16)):
      %w = compound.cast %a2 : $tile(MK, f16) -> $tile(MK)
      %e2 = compound.map exp %w : $tile(MK) -> $tile(MK)
      schedule.yield %e2 : $tile(MK)
    }
    %c1 = schedule.temporal [K = $count(K)] ins(%e1, %b1 : $row(MK, f32, HBM), $row(KN, f16, HBM)) outs($row(MN)) combine ["add"] {
    ^bb2(%e2: $tile(MK, f32), %b2: $tile(KN, f16)):
      %w = compound.cast %b2 : $tile(KN, f16) -> $tile(KN)
      %c2 = compound.contract %e2, %w : $tile(MK), $tile(KN) -> $tile(MN)
      schedule.yield %c2 : $tile(MN)
    }
    schedule.yield %e1, %c1 : $row(MK, f32, HBM), $row(MN)
  }
  func.return %e, %c : $whole(MK, f32, HBM), $whole(MN, f32, HBM)
}
func.func private @exp_gemm__reference(%a: $ref(MK, f16), %b: $ref(KN, f16)) -> ($ref(MK), $ref(MN)) attributes {comet.reference} {
  %w = compound.cast %a : $ref(MK, f16) -> $ref(MK)
  %e = compound.map exp %w : $ref(MK) -> $ref(MK)
  %v = compound.cast %b : $ref(KN, f16) -> $ref(KN)
  %c = compound.contract %e, %v : $ref(MK), $ref(KN) -> $ref(MN)
  func.return %e, %c : $ref(MK), $ref(MN)
}
