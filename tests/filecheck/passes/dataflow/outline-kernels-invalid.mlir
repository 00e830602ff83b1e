// RUN: comet-opt %s -p outline-kernels --split-input-file --verify-diagnostics | filecheck %s

// CHECK: outline-kernels: @f is at the elementary level and this pass takes the schedule level; run fuse first
func.func @f(%x: tensor<6xf32, #compound.dims<M>>) -> tensor<6xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<6xf32, #compound.dims<M>> -> tensor<6xf32, #compound.dims<M>>
  func.return %y : tensor<6xf32, #compound.dims<M>>
}

// -----

func.func @returned(%x: tensor<4xf32, #compound.dims<M @HBM>>) -> (tensor<4xf32, #compound.dims<M @HBM>>, tensor<4xf32, #compound.dims<N @HBM>>) {
  %e = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<4xf32, #compound.dims<M @HBM>>) outs(tensor<4xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<2xf32, #compound.dims<M @REG>>):
    %e1 = compound.map exp %x1 : tensor<2xf32, #compound.dims<M @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
    schedule.yield %e1 : tensor<2xf32, #compound.dims<M @REG>>
  }
  %y = compound.index : tensor<4xf32, #compound.dims<N @HBM>>
  func.return %e, %y : tensor<4xf32, #compound.dims<M @HBM>>, tensor<4xf32, #compound.dims<N @HBM>>
}

// CHECK: outline-kernels: compound.index in @returned is outside the nodes on the launch grid; run fuse for a GPU first

// -----

!shard = tensor<2xf32, #compound.dims<M @HBM>>
!tile = tensor<2xf32, #compound.dims<M @REG>>
collective.mesh @gpus {rank = 4} at {rank = "HBM"}
// CHECK: outline-kernels: a kernel reads unequal shards of M, and %s1, which has no shards of it; give the dimension another name in one of them
func.func @part(%x: tensor<7xf32, #compound.dims<M @HBM>>, %s: !shard) -> (tensor<7xf32, #compound.dims<M @HBM>>, !shard) {
  %y, %z = collective.spmd on @gpus ins(%x, %s : tensor<7xf32, #compound.dims<M @HBM>>, !shard) sharded [{M = ["rank"]}, {}] outs(tensor<7xf32, #compound.dims<M @HBM>>, !shard) sharded [{M = ["rank"]}, {}] {
  ^bb0(%x1: !shard, %s1: !shard):
    %e, %n = schedule.spatial on grid [g0: M = 1] ins(%x1, %s1 : !shard, !shard) outs(!shard, !shard) {
    ^bb0(%x2: !tile, %s2: !tile):
      %e1 = compound.map exp %x2 : !tile -> !tile
      %n1 = compound.map neg %s2 : !tile -> !tile
      schedule.yield %e1, %n1 : !tile, !tile
    }
    collective.yield %e, %n : !shard, !shard
  }
  func.return %y, %z : tensor<7xf32, #compound.dims<M @HBM>>, !shard
}
