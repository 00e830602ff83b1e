// scopes: row B M; tile B M N
// Attention of one head for each batch entry, by a fold over the keys.

func.func @attention(%q: $whole(BMD, f16, HBM), %k: $whole(BND, f16, HBM), %v: $whole(BNE, f16, HBM)) -> $whole(BME, f16, HBM) {
  %o = schedule.spatial on grid [g0: B = $count(B), g1: M = $count(M)] ins(%q, %k, %v : $whole(BMD, f16, HBM), $whole(BND, f16, HBM), $whole(BNE, f16, HBM)) outs($whole(BME, f16, HBM)) {
  ^bb0(%q1: $row(BMD, f16, SMEM), %k1: $row(BND, f16, HBM), %v1: $row(BNE, f16, HBM)):
    %low = compound.fill -1.0e30 : $row(BM)
    %zero = compound.fill 0.0 : $row(BM)
    %nothing = compound.fill 0.0 : $row(BME)
    %top, %sum, %acc = schedule.temporal [N = $count(N)] ins(%q1, %k1, %v1 : $row(BMD, f16, SMEM), $row(BND, f16, HBM), $row(BNE, f16, HBM)) iter_args(%low, %zero, %nothing : $row(BM), $row(BM), $row(BME)) outs($row(BM), $row(BM), $row(BME)) combine ["fold", "fold", "fold"] {
    ^bb1(%q2: $tile(BMD, f16, SMEM), %k2: $tile(BND, f16, SMEM), %v2: $tile(BNE, f16, SMEM), %m0: $row(BM), %l0: $row(BM), %o0: $row(BME)):
      %s = compound.contract %q2, %k2 : $tile(BMD, f16, SMEM), $tile(BND, f16, SMEM) -> $tile(BMN)
      %mt = compound.reduce max %s : $tile(BMN) -> $row(BM)
      %m1 = compound.map max %m0, %mt : $row(BM), $row(BM) -> $row(BM)
      %gap = compound.map sub %m0, %m1 : $row(BM), $row(BM) -> $row(BM)
      %scale = compound.map exp %gap : $row(BM) -> $row(BM)
      %old = compound.map mult %l0, %scale : $row(BM), $row(BM) -> $row(BM)
      %less = compound.map sub %s, %m1 : $tile(BMN), $row(BM) -> $tile(BMN)
      %p = compound.map exp %less : $tile(BMN) -> $tile(BMN)
      %new = compound.reduce add %p : $tile(BMN) -> $row(BM)
      %l1 = compound.map add %old, %new : $row(BM), $row(BM) -> $row(BM)
      %p16 = compound.cast %p : $tile(BMN) -> $tile(BMN, f16)
      %pv = compound.contract %p16, %v2 : $tile(BMN, f16), $tile(BNE, f16, SMEM) -> $row(BME)
      %kept = compound.map mult %o0, %scale : $row(BME), $row(BM) -> $row(BME)
      %o1 = compound.map add %kept, %pv : $row(BME), $row(BME) -> $row(BME)
      schedule.yield %m1, %l1, %o1 : $row(BM), $row(BM), $row(BME)
    }
    %normal = compound.map div %acc, %sum : $row(BME), $row(BM) -> $row(BME)
    %half = compound.cast %normal : $row(BME) -> $row(BME, f16)
    schedule.yield %half : $row(BME, f16)
  }
  func.return %o : $whole(BME, f16, HBM)
}
func.func private @attention__reference(%q: $ref(BMD, f16), %k: $ref(BND, f16), %v: $ref(BNE, f16)) -> $ref(BME, f16) attributes {comet.reference} {
  %s = compound.contract %q, %k : $ref(BMD, f16), $ref(BND, f16) -> $ref(BMN)
  %m = compound.reduce max %s : $ref(BMN) -> $ref(BM)
  %less = compound.map sub %s, %m : $ref(BMN), $ref(BM) -> $ref(BMN)
  %p = compound.map exp %less : $ref(BMN) -> $ref(BMN)
  %l = compound.reduce add %p : $ref(BMN) -> $ref(BM)
  %w = compound.map div %p, %l : $ref(BMN), $ref(BM) -> $ref(BMN)
  %w16 = compound.cast %w : $ref(BMN) -> $ref(BMN, f16)
  %o = compound.contract %w16, %v : $ref(BMN, f16), $ref(BNE, f16) -> $ref(BME)
  %half = compound.cast %o : $ref(BME) -> $ref(BME, f16)
  func.return %half : $ref(BME, f16)
}
