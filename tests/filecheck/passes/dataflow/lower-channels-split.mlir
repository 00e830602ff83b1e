// RUN: comet-opt %s -p lower-channels | filecheck %s

// Tiles that are for one rank each belong to different messages, so that a flag has a writer for each of the two tiles
// that one message has. What nobody signals gets no flags: barriers stand around it.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!H = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!W = tensor<2x16xf32, #compound.dims<M, K @REG>>
!PUSH = !dataflow.channel<push gather K split M : !L -> !H>
!PULL = !dataflow.channel<pull gather K split M : !L -> !H>

collective.mesh @gpus {rank = 2}

func.func @f(%x: tensor<4x16xf32, #compound.dims<M, K @HBM>>) -> tensor<4x16xf32, #compound.dims<M, K @HBM>> {
  %all = collective.spmd on @gpus ins(%x : tensor<4x16xf32, #compound.dims<M, K @HBM>>) sharded [{K = ["rank"]}]
      outs(tensor<4x16xf32, #compound.dims<M, K @HBM>>) sharded [{M = ["rank"]}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      // CHECK:      %told_recv = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !dataflow.channel<push gather K split M :
      // CHECK-NEXT: %told_flags = dataflow.flags for %told_recv writers 2 : {{.*}} -> !dataflow.flags<2, []>
      // CHECK-NEXT: %kept_recv = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !dataflow.channel<pull gather K split M :
      // CHECK-NEXT: dataflow.kernel @give ins(%x1, %told_recv, %kept_recv, %told_flags : {{.*}}) destinations ["M"] {
      %told_channel = dataflow.channel on @gpus ["rank"] blocks [] : !PUSH
      %kept_channel = dataflow.channel on @gpus ["rank"] blocks [] : !PULL
      dataflow.kernel @give ins(%x1, %told_channel, %kept_channel : !L, !PUSH, !PULL)
          destinations ["M"] {
      ^bb0(%x2: !L, %to: !PUSH, %own: !PULL):
        %t = schedule.spatial on grid [g0: M = 2, g1: M = 1, g2: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        // CHECK:      dataflow.push %t to %to epoch %epoch :
        // CHECK-NEXT: dataflow.signal %to flags %flags epoch %epoch release system fence :
        dataflow.push %t to %to : !L, !PUSH
        dataflow.signal %to : !PUSH
        %u = schedule.spatial on grid [g0: M = 2, g1: M = 1, g2: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%u0: !T):
          schedule.yield %u0 : !T
        }
        // CHECK: dataflow.stage %u to %own epoch %epoch :
        dataflow.stage %u to %own : !L, !PULL
        dataflow.yield
      }
      dataflow.barrier
      %b = dataflow.buffer : !H
      %y = dataflow.kernel @take ins(%kept_channel : !PULL) outs(%b : !H) {
      ^bb0(%from: !PULL):
        // CHECK:      %epoch = dataflow.epoch
        // CHECK-NEXT: %g = dataflow.pull %from epoch %epoch :
        %g = dataflow.pull %from : !PULL -> !H
        %s = schedule.spatial on grid [g0: M = 1] ins(%g : !H) outs(!H) {
        ^bb0(%w: !W):
          schedule.yield %w : !W
        }
        dataflow.yield %s : !H
      } -> !H
      dataflow.yield %y : !H
    } -> !H
    collective.yield %r : !H
  }
  func.return %all : tensor<4x16xf32, #compound.dims<M, K @HBM>>
}
