// scopes: row M; tile M N
// Contractions that are no product of two matrices: one with a batch, one outer product.

func.func @contractions(%x: $whole(MN, f32, HBM), %y: $whole(NM, f32, HBM), %v: $whole(N, f32, HBM)) -> ($whole(M, f32, HBM), $whole(MN, f32, HBM)) {
  %dots, %outer = schedule.spatial on grid [g0: M = $count(M)] ins(%x, %y, %v : $whole(MN, f32, HBM), $whole(NM, f32, HBM), $whole(N, f32, HBM)) outs($whole(M, f32, HBM), $whole(MN, f32, HBM)) {
  ^bb0(%x1: $row(MN, f32, HBM), %y1: $row(NM, f32, HBM), %v1: $row(N, f32, HBM)):
    %d = schedule.temporal [N = $count(N)] ins(%x1, %y1 : $row(MN, f32, HBM), $row(NM, f32, HBM)) outs($row(M)) combine ["add"] {
    ^bb1(%x2: $tile(MN), %y2: $tile(NM)):
      %d1 = compound.contract %x2, %y2 : $tile(MN), $tile(NM) -> $tile(M)
      schedule.yield %d1 : $tile(M)
    }
    %top = schedule.temporal [N = $count(N)] ins(%x1 : $row(MN, f32, HBM)) outs($row(M)) combine ["max"] {
    ^bb2(%x2: $tile(MN)):
      %t = compound.reduce max %x2 : $tile(MN) -> $tile(M)
      schedule.yield %t : $tile(M)
    }
    %sum = compound.map add %d, %top : $row(M), $row(M) -> $row(M)
    %both = compound.map max %sum, %top : $row(M), $row(M) -> $row(M)
    %o = schedule.temporal [N = $count(N)] ins(%both, %v1 : $row(M), $row(N, f32, HBM)) outs($row(MN, f32, HBM)) {
    ^bb3(%d2: $tile(M), %v2: $tile(N)):
      %o1 = compound.contract %d2, %v2 : $tile(M), $tile(N) -> $tile(MN)
      schedule.yield %o1 : $tile(MN)
    }
    schedule.yield %both, %o : $row(M), $row(MN, f32, HBM)
  }
  func.return %dots, %outer : $whole(M, f32, HBM), $whole(MN, f32, HBM)
}

func.func private @contractions__reference(%x: $ref(MN), %y: $ref(NM), %v: $ref(N)) -> ($ref(M), $ref(MN)) attributes {comet.reference} {
  %d = compound.contract %x, %y : $ref(MN), $ref(NM) -> $ref(M)
  %top = compound.reduce max %x : $ref(MN) -> $ref(M)
  %sum = compound.map add %d, %top : $ref(M), $ref(M) -> $ref(M)
  %both = compound.map max %sum, %top : $ref(M), $ref(M) -> $ref(M)
  %outer = compound.contract %both, %v : $ref(M), $ref(N) -> $ref(MN)
  func.return %both, %outer : $ref(M), $ref(MN)
}
