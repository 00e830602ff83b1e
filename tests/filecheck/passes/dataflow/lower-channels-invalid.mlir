// RUN: comet-opt %s -p lower-channels --split-input-file --verify-diagnostics | filecheck %s

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: lower-channels: the channel %x_channel is stored to 0 times; push or stage one value to it
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

// -----

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: lower-channels: dataflow.wait waits without a signal; remove it, or signal in the kernel that stores to the channel
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

// -----

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: lower-channels: what is stored to the channel %x_channel is not made by a node on the launch grid; store what such a node makes
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
        dataflow.push %x2 to %ch : !L, !CH
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

// -----

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x4xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<pull gather K : !L -> !G>

collective.mesh @gpus {rank = 2}
// CHECK: lower-channels: a kernel stores to the channel %x_channel of an input, which the caller has written there; use a channel of its own
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l, %l : !L, !L) {
    ^bb0(%x1: !L, %y1: !L):
      %x_channel = dataflow.channel of %y1 on @gpus ["rank"] blocks [] : !CH, !L
      dataflow.kernel @send ins(%x1, %x_channel : !L, !CH) {
      ^bb0(%x2: !L, %ch: !CH):
        %t = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          schedule.yield %t0 : !T
        }
        dataflow.stage %t to %ch : !L, !CH
        dataflow.signal %ch : !CH
        dataflow.yield
      }
      %b = dataflow.buffer : !G
      %y = dataflow.kernel @take ins(%x_channel : !CH) outs(%b : !G) {
      ^bb0(%ch: !CH):
        dataflow.wait %ch : !CH
        %g = dataflow.pull %ch : !CH -> !G
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
