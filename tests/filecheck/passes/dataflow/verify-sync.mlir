// RUN: comet-opt %s > %t && comet-opt %s -p verify-sync | diff %t - && filecheck %s < %t

// What is right stays as it is. Here flags count two tiles of each block, and launches take two slots in turn.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!W = tensor<2x16xf32, #compound.dims<M, K @REG>>
!PUSH = !dataflow.channel<push gather K : !L -> !G>
!PULL = !dataflow.channel<pull gather K : !L -> !G>
!F = !dataflow.flags<2, [M = 2]>

collective.mesh @gpus {rank = 2}

// CHECK: func.func @waits
func.func @waits(%x: !G) -> !G {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      // CHECK: %box = dataflow.receive_buffer slots 2 on @gpus ["rank"]
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !PUSH
      // CHECK-NEXT: %flags = dataflow.flags for %box writers 2
      %flags = dataflow.flags for %box writers 2 : !PUSH -> !F
      dataflow.kernel @send ins(%x1, %box, %flags : !L, !PUSH, !F) {
      ^bb0(%x2: !L, %to: !PUSH, %told: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        dataflow.push %t to %to epoch %e : !L, !PUSH
        // CHECK: dataflow.signal %to flags %told epoch %e release system fence
        dataflow.signal %to flags %told epoch %e release system fence : !PUSH, !F
        dataflow.yield
      }
      %b = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%box, %flags : !PUSH, !F) outs(%b : !G) {
      ^bb0(%from: !PUSH, %told: !F):
        %e = dataflow.epoch
        // CHECK: dataflow.wait %from flags %told epoch %e acquire system arrivals 2
        dataflow.wait %from flags %told epoch %e acquire system arrivals 2 : !PUSH, !F
        %g = dataflow.read %from epoch %e : !PUSH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!G) {
        ^bb0(%w: !W):
          schedule.yield %w : !W
        }
        dataflow.yield %s : !G
      } -> !G
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}

// With barriers of all ranks on both sides of the readers one slot is enough, and nobody waits.

// CHECK: func.func @barriers
func.func @barriers(%x: !G) -> !G {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      // CHECK: %box = dataflow.receive_buffer slots 1 on @gpus ["rank"]
      %box = dataflow.receive_buffer slots 1 on @gpus ["rank"] : !PULL
      dataflow.kernel @keep ins(%x1, %box : !L, !PULL) {
      ^bb0(%x2: !L, %to: !PULL):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        dataflow.stage %t to %to epoch %e : !L, !PULL
        dataflow.yield
      }
      // CHECK: dataflow.barrier
      dataflow.barrier
      %b = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%box : !PULL) outs(%b : !G) {
      ^bb0(%from: !PULL):
        %e = dataflow.epoch
        %g = dataflow.pull %from epoch %e : !PULL -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!G) {
        ^bb0(%w: !W):
          schedule.yield %w : !W
        }
        dataflow.yield %s : !G
      } -> !G
      // CHECK: dataflow.barrier
      dataflow.barrier
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}
