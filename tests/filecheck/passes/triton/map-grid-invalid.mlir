// RUN: comet-opt %s -p lower-to-triton --split-input-file --verify-diagnostics | filecheck %s

!X = tensor<6x8xf32, #compound.dims<M, N @HBM>>
!T = tensor<3x8xf32, #compound.dims<M, N @REG>>
// CHECK: lower-to-triton: programs are on axis 1 of the launch grid, and those of several nodes, groups or ranks are on axis 0; write `on 0` for all loops
func.func @f(%x: !X) -> (!X, !X) {
  %p, %q = dataflow.program ins(%x : !X) {
  ^bb0(%x1: !X):
    %first = dataflow.buffer : !X
    %second = dataflow.buffer : !X
    %out, %other = dataflow.kernel @both ins(%x1 : !X) outs(%first, %second : !X, !X) {
    ^bb0(%x2: !X):
      %r = schedule.spatial on grid [g0: M = 2] programs <2 of 3 on 1> ins(%x2 : !X) outs(!X) {
      ^bb0(%tile: !T):
        %e = compound.map exp %tile : !T -> !T
        schedule.yield %e : !T
      }
      %s = schedule.spatial on grid [g0: M = 2] programs <2 of 3 on 1> ins(%x2 : !X) outs(!X) {
      ^bb0(%tile: !T):
        %e = compound.map neg %tile : !T -> !T
        schedule.yield %e : !T
      }
      dataflow.yield %r, %s : !X, !X
    } -> !X, !X
    dataflow.yield %out, %other : !X, !X
  } -> !X, !X
  func.return %p, %q : !X, !X
}
