// scopes: row M; tile M N
// Mean and variance of rows by Welford's fold, which needs the real extent of a chunk.

func.func @normalize(%x: $whole(MN, f32, HBM)) -> ($whole(M, f32, HBM), $whole(M, f32, HBM)) {
  %mean, %var = schedule.spatial on grid [g0: M = $count(M)] ins(%x : $whole(MN, f32, HBM)) outs($whole(M, f32, HBM), $whole(M, f32, HBM)) {
  ^bb0(%x1: $row(MN, f32, HBM)):
    %zero = compound.fill 0.0 : $row(M)
    %none = compound.fill 0.0 : $row(M)
    %count = compound.fill 0.0 : $row()
    %number, %average, %squares = schedule.temporal [N = $count(N)] ins(%x1 : $row(MN, f32, HBM)) iter_args(%count, %zero, %none : $row(), $row(M), $row(M)) outs($row(), $row(M), $row(M)) combine ["fold", "fold", "fold"] {
    ^bb1(%x2: $tile(MN), %n0: $row(), %mu0: $row(M), %sq0: $row(M)):
      %nt = compound.extent "N" of %x2 : $tile(MN) -> $row()
      %n1 = compound.map add %n0, %nt : $row(), $row() -> $row()
      %t = compound.reduce add %x2 : $tile(MN) -> $row(M)
      %mt = compound.map div %t, %nt : $row(M), $row() -> $row(M)
      %d = compound.map sub %x2, %mt : $tile(MN), $row(M) -> $tile(MN)
      %dd = compound.map mult %d, %d : $tile(MN), $tile(MN) -> $tile(MN)
      %sqt = compound.reduce add %dd : $tile(MN) -> $row(M)
      %gap = compound.map sub %mt, %mu0 : $row(M), $row(M) -> $row(M)
      %w = compound.map div %nt, %n1 : $row(), $row() -> $row()
      %shift = compound.map mult %gap, %w : $row(M), $row() -> $row(M)
      %mu1 = compound.map add %mu0, %shift : $row(M), $row(M) -> $row(M)
      %gg = compound.map mult %gap, %gap : $row(M), $row(M) -> $row(M)
      %nw = compound.map mult %n0, %w : $row(), $row() -> $row()
      %extra = compound.map mult %gg, %nw : $row(M), $row() -> $row(M)
      %both = compound.map add %sq0, %sqt : $row(M), $row(M) -> $row(M)
      %sq1 = compound.map add %both, %extra : $row(M), $row(M) -> $row(M)
      schedule.yield %n1, %mu1, %sq1 : $row(), $row(M), $row(M)
    }
    %variance = compound.map div %squares, %number : $row(M), $row() -> $row(M)
    schedule.yield %average, %variance : $row(M), $row(M)
  }
  func.return %mean, %var : $whole(M, f32, HBM), $whole(M, f32, HBM)
}
func.func private @normalize__reference(%x: $ref(MN)) -> ($ref(M), $ref(M)) attributes {comet.reference} {
  %n = compound.fill $extent(N).0 : $ref()
  %t = compound.reduce add %x : $ref(MN) -> $ref(M)
  %mu = compound.map div %t, %n : $ref(M), $ref() -> $ref(M)
  %d = compound.map sub %x, %mu : $ref(MN), $ref(M) -> $ref(MN)
  %dd = compound.map mult %d, %d : $ref(MN), $ref(MN) -> $ref(MN)
  %sq = compound.reduce add %dd : $ref(MN) -> $ref(M)
  %var = compound.map div %sq, %n : $ref(M), $ref() -> $ref(M)
  func.return %mu, %var : $ref(M), $ref(M)
}
