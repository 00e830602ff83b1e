// RUN: comet-opt %s -p place-waits --verify-diagnostics | filecheck %s

// CHECK: place-waits: @f moves tiles at the borders of nodes, which a wait inside would come after; run materialize-copies first
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x16xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !L) -> !G {
  %all = collective.spmd on @gpus ins(%x : !L) sharded [{}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %box writers 1 : !CH -> !F
      %b = dataflow.buffer : !G
      %y = dataflow.kernel @k ins(%box, %flags : !CH, !F) outs(%b : !G) {
      ^bb0(%ch: !CH, %f: !F):
        %e = dataflow.epoch
        dataflow.wait %ch flags %f epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %ch epoch %e : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!G) {
        ^bb0(%w: !t):
          schedule.yield %w : !t
        }
        dataflow.yield %s : !G
      } -> !G
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  return %all : !G
}
