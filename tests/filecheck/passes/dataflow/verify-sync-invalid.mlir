// RUN: comet-opt %s -p lower-channels,verify-sync --split-input-file --verify-diagnostics | filecheck %s
// RUN: comet-opt %s -p verify-sync --split-input-file --verify-diagnostics | filecheck %s --check-prefix=CHANNEL

// More broken programs, each with its reason, are in tests/unit/dataflow/test_verify_sync.py.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: verify-sync: @take reads %x_recv without a wait on its flags, and no barrier of all ranks is in between; add a dataflow.wait
// CHANNEL: verify-sync: %x_channel is a channel still; run lower-channels first
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

// -----

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: verify-sync: @take waits for @send, which every rank launches only afterwards: all wait for ever; launch it before
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %x_channel = dataflow.channel on @gpus ["rank"] blocks [M = 2] : !CH
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
      dataflow.yield %y : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}
