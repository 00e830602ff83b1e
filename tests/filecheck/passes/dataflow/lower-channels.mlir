// RUN: comet-opt %s -p lower-channels | filecheck %s
// RUN: comet-opt %s -p lower-channels,verify-sync | filecheck %s

// A channel is a receive buffer of two slots, and flags that count the two tiles of each block of M.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}

func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %x_channel = dataflow.channel on @gpus ["rank"] blocks [M = 2] : !CH
      dataflow.kernel @send ins(%x1, %x_channel : !L, !CH) {
      ^bb0(%x2: !L, %ch: !CH):
        %t = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        dataflow.push %t to %ch : !L, !CH
        dataflow.signal %ch : !CH
        dataflow.yield
      }
      %b = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%x_channel : !CH) outs(%b : !G) {
      ^bb0(%ch: !CH):
        dataflow.wait %ch : !CH
        %g = dataflow.read %ch : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!G) {
        ^bb0(%w: tensor<2x16xf32, #compound.dims<M, K @REG>>):
          schedule.yield %w : tensor<2x16xf32, #compound.dims<M, K @REG>>
        }
        dataflow.yield %s : !G
      } -> !G
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}

// CHECK:       %x_recv = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !dataflow.channel<push gather K : {{.*}}>
// CHECK-NEXT:  %x_flags = dataflow.flags for %x_recv writers 2 : {{.*}} -> !dataflow.flags<2, [M = 2]>
// CHECK-NEXT:  dataflow.kernel @send ins(%x1, %x_recv, %x_flags : {{.*}}) {
// CHECK-NEXT:  ^bb0(%x2: {{.*}}, %ch: {{.*}}, %flags: !dataflow.flags<2, [M = 2]>):
// CHECK-NEXT:    %epoch = dataflow.epoch
// CHECK-NEXT:    %t = schedule.spatial on grid [g0: M = 2, g1: K = 2]
// CHECK:         dataflow.push %t to %ch epoch %epoch :
// CHECK-NEXT:    dataflow.signal %ch flags %flags epoch %epoch release system fence :
// CHECK-NEXT:    dataflow.yield
// CHECK:       %y = dataflow.kernel @take ins(%x_recv, %x_flags : {{.*}}) outs(%b : {{.*}}) {
// CHECK:         %epoch = dataflow.epoch
// CHECK-NEXT:    dataflow.wait %ch flags %flags epoch %epoch acquire system arrivals 2 :
// CHECK-NEXT:    %g = dataflow.read %ch epoch %epoch :
