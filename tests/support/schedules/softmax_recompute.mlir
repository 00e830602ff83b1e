// scopes: row M; strip M N; tile M N K
// GEMM and softmax in two sweeps over N; the second computes the product again.

func.func @gemm_softmax(%a: $whole(MK, f16, HBM), %b: $whole(KN, f16, HBM)) -> $whole(MN, f16, HBM) {
  %p = schedule.spatial on grid [g0: M = $count(M)] ins(%a, %b : $whole(MK, f16, HBM), $whole(KN, f16, HBM)) outs($whole(MN, f16, HBM)) {
  ^bb0(%a1: $row(MK, f16, HBM), %b1: $row(KN, f16, HBM)):
    %low = compound.fill -1.0e30 : $row(M)
    %zero = compound.fill 0.0 : $row(M)
    %top, %sum = schedule.temporal [N = $count(N)] ins(%a1, %b1 : $row(MK, f16, HBM), $row(KN, f16, HBM)) iter_args(%low, %zero : $row(M), $row(M)) outs($row(M), $row(M)) combine ["fold", "fold"] {
    ^bb1(%a2: $strip(MK, f16, HBM), %b2: $strip(KN, f16, HBM), %m0: $row(M), %l0: $row(M)):
      %c1 = schedule.temporal [K = $count(K)] ins(%a2, %b2 : $strip(MK, f16, HBM), $strip(KN, f16, HBM)) outs($strip(MN)) combine ["add"] {
      ^bb3(%a3: $tile(MK, f16, SMEM), %b3: $tile(KN, f16, SMEM)):
        %c2 = compound.contract %a3, %b3 : $tile(MK, f16, SMEM), $tile(KN, f16, SMEM) -> $tile(MN)
        schedule.yield %c2 : $tile(MN)
      }
      %mt = compound.reduce max %c1 : $strip(MN) -> $row(M)
      %m1 = compound.map max %m0, %mt : $row(M), $row(M) -> $row(M)
      %gap = compound.map sub %m0, %m1 : $row(M), $row(M) -> $row(M)
      %scale = compound.map exp %gap : $row(M) -> $row(M)
      %old = compound.map mult %l0, %scale : $row(M), $row(M) -> $row(M)
      %s = compound.map sub %c1, %m1 : $strip(MN), $row(M) -> $strip(MN)
      %e = compound.map exp %s : $strip(MN) -> $strip(MN)
      %new = compound.reduce add %e : $strip(MN) -> $row(M)
      %l1 = compound.map add %old, %new : $row(M), $row(M) -> $row(M)
      schedule.yield %m1, %l1 : $row(M), $row(M)
    }
    %q = schedule.temporal [N = $count(N)] ins(%a1, %b1, %top, %sum : $row(MK, f16, HBM), $row(KN, f16, HBM), $row(M), $row(M)) outs($row(MN, f16, HBM)) {
    ^bb2(%a2: $strip(MK, f16, HBM), %b2: $strip(KN, f16, HBM), %m2: $row(M), %l2: $row(M)):
      %c1 = schedule.temporal [K = $count(K)] ins(%a2, %b2 : $strip(MK, f16, HBM), $strip(KN, f16, HBM)) outs($strip(MN)) combine ["add"] {
      ^bb4(%a3: $tile(MK, f16, SMEM), %b3: $tile(KN, f16, SMEM)):
        %c2 = compound.contract %a3, %b3 : $tile(MK, f16, SMEM), $tile(KN, f16, SMEM) -> $tile(MN)
        schedule.yield %c2 : $tile(MN)
      }
      %s = compound.map sub %c1, %m2 : $strip(MN), $row(M) -> $strip(MN)
      %e = compound.map exp %s : $strip(MN) -> $strip(MN)
      %d = compound.map div %e, %l2 : $strip(MN), $row(M) -> $strip(MN)
      %h = compound.cast %d : $strip(MN) -> $strip(MN, f16)
      schedule.yield %h : $strip(MN, f16)
    }
    schedule.yield %q : $row(MN, f16, HBM)
  }
  func.return %p : $whole(MN, f16, HBM)
}
func.func private @gemm_softmax__reference(%a: $ref(MK, f16), %b: $ref(KN, f16)) -> $ref(MN, f16) attributes {comet.reference} {
  %c = compound.contract %a, %b : $ref(MK, f16), $ref(KN, f16) -> $ref(MN)
  %m = compound.reduce max %c : $ref(MN) -> $ref(M)
  %s = compound.map sub %c, %m : $ref(MN), $ref(M) -> $ref(MN)
  %e = compound.map exp %s : $ref(MN) -> $ref(MN)
  %l = compound.reduce add %e : $ref(MN) -> $ref(M)
  %p = compound.map div %e, %l : $ref(MN), $ref(M) -> $ref(MN)
  %h = compound.cast %p : $ref(MN) -> $ref(MN, f16)
  func.return %h : $ref(MN, f16)
}
