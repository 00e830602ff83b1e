// RUN:
!x = tensor<8xf32, #compound.dims<M @HBM>>
func.func @f(%x: !x) -> !x {
  %y = schedule.temporal [M = 1] ins(%x : !x) outs(!x) {
  ^bb0(%tile: !x):
    %z = schedule.temporal [M = 1] ins(%tile : !x) outs(!x) {
    ^bb0(%w: !x):
      schedule.yield %tile : !x
    }
    schedule.yield %z : !x
  }
  func.return %y : !x
}
