// RUN: comet-opt %s -p mask-copies --split-input-file --verify-diagnostics | filecheck %s

!x = tensor<6x8xf32, #compound.dims<M, N @HBM>>
!v = tensor<3x8xf32, #compound.dims<M, N @HBM>>
!t = tensor<3x8xf32, #compound.dims<M, N @REG>>

// CHECK: mask-copies: the tile tensor<3x8xf32, #compound.dims<M, N @REG>> may end before its block does along M, which the mask of its schedule.copy lacks; add it, or leave the mask out
func.func @f(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!x) {
  ^bb0(%x1: !v):
    %x2 = schedule.copy %x1 mask ["N"] : !v -> !t
    %y2 = schedule.copy %x2 : !t -> !v
    schedule.yield %y2 : !v
  }
  func.return %y : !x
}
