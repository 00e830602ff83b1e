// scopes: part M; band m; tile m N
// Rows split over programs, and by each program again: m is a part of M.

func.func @centre(%x: $whole(MN, f32, HBM)) -> $whole(MN, f32, HBM) {
  %y = schedule.spatial on grid [g0: M = $count(M)] ins(%x : $whole(MN, f32, HBM)) outs($whole(MN, f32, HBM)) {
  ^bb0(%x1: $part(MN, f32, HBM)):
    %y1 = schedule.temporal [M = $inner(M)] ins(%x1 : $part(MN, f32, HBM)) outs($part(MN, f32, HBM)) {
    ^bb1(%x2: $band(MN, f32, HBM)):
      %low = schedule.temporal [N = $count(N)] ins(%x2 : $band(MN, f32, HBM)) outs($band(M)) combine ["max"] {
      ^bb2(%x3: $tile(MN)):
        %t = compound.reduce max %x3 : $tile(MN) -> $tile(M)
        schedule.yield %t : $tile(M)
      }
      %y2 = schedule.temporal [N = $count(N)] ins(%x2, %low : $band(MN, f32, HBM), $band(M)) outs($band(MN, f32, HBM)) {
      ^bb3(%x3: $tile(MN), %low1: $tile(M)):
        %y3 = compound.map sub %x3, %low1 : $tile(MN), $tile(M) -> $tile(MN)
        schedule.yield %y3 : $tile(MN)
      }
      schedule.yield %y2 : $band(MN, f32, HBM)
    }
    schedule.yield %y1 : $part(MN, f32, HBM)
  }
  func.return %y : $whole(MN, f32, HBM)
}

func.func private @centre__reference(%x: $ref(MN)) -> $ref(MN) attributes {comet.reference} {
  %low = compound.reduce max %x : $ref(MN) -> $ref(M)
  %y = compound.map sub %x, %low : $ref(MN), $ref(M) -> $ref(MN)
  func.return %y : $ref(MN)
}
