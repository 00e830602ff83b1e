// RUN: comet-opt %s -p lower-to-triton --split-input-file --verify-diagnostics | filecheck %s

!X = tensor<6x8xf32, #compound.dims<M, N @HBM>>
!T = tensor<3x8xf32, #compound.dims<M, N @REG>>
collective.mesh @gpus {rank = 2}
// CHECK: lower-to-triton: programs are on axis 1 of the launch grid, and kernels of several ranks have axis 0 only; write `on 0` for all loops
func.func @f(%x: !X) -> !X {
  %y = collective.spmd on @gpus ins(%x : !X) sharded [{}] outs(!X) sharded [{}] {
  ^bb0(%x1: !X):
    %p = dataflow.program ins(%x1 : !X) {
    ^bb0(%x2: !X):
      %buffer = dataflow.buffer : !X
      %out = dataflow.kernel @exp ins(%x2 : !X) outs(%buffer : !X) {
      ^bb0(%x3: !X):
        %r = schedule.spatial on grid [g0: M = 2] programs <2 of 3 on 1> ins(%x3 : !X) outs(!X) {
        ^bb0(%tile: !T):
          %e = compound.map exp %tile : !T -> !T
          schedule.yield %e : !T
        }
        dataflow.yield %r : !X
      } -> !X
      dataflow.yield %out : !X
    } -> !X
    collective.yield %p : !X
  }
  func.return %y : !X
}
