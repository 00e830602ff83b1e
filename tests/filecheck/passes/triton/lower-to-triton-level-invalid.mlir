// RUN: comet-opt %s -p lower-to-triton --split-input-file --verify-diagnostics | filecheck %s

// CHECK: lower-to-triton: @f is not one dataflow.program; run outline-kernels first
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  func.return %x : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: kernel @k has compound.map outside of nodes on the launch grid; put it into one
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = dataflow.program ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<M @HBM>>):
    %buffer = dataflow.buffer : tensor<6xf32, #compound.dims<M @HBM>>
    %y1 = dataflow.kernel @k ins(%x1 : tensor<6xf32, #compound.dims<M @HBM>>) outs(%buffer : tensor<6xf32, #compound.dims<M @HBM>>) {
    ^bb1(%x2: tensor<6xf32, #compound.dims<M @HBM>>):
      %y2 = compound.map exp %x2 : tensor<6xf32, #compound.dims<M @HBM>> -> tensor<6xf32, #compound.dims<M @HBM>>
      dataflow.yield %y2 : tensor<6xf32, #compound.dims<M @HBM>>
    } -> tensor<6xf32, #compound.dims<M @HBM>>
    dataflow.yield %y1 : tensor<6xf32, #compound.dims<M @HBM>>
  } -> tensor<6xf32, #compound.dims<M @HBM>>
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: kernel @k has no node on the launch grid; remove the kernel, or write what it computes as one
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = dataflow.program ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<M @HBM>>):
    %buffer = dataflow.buffer : tensor<6xf32, #compound.dims<M @HBM>>
    %y1 = dataflow.kernel @k ins(%x1 : tensor<6xf32, #compound.dims<M @HBM>>) outs(%buffer : tensor<6xf32, #compound.dims<M @HBM>>) {
    ^bb1(%x2: tensor<6xf32, #compound.dims<M @HBM>>):
      dataflow.yield %x2 : tensor<6xf32, #compound.dims<M @HBM>>
    } -> tensor<6xf32, #compound.dims<M @HBM>>
    dataflow.yield %y1 : tensor<6xf32, #compound.dims<M @HBM>>
  } -> tensor<6xf32, #compound.dims<M @HBM>>
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: no node of kernel @send does its dataflow.signal; verify-sync says which order of stores, signals and loads is right
!SHARD = tensor<8x16xf32, #compound.dims<M, K @HBM>>
!WHOLE = tensor<8x64xf32, #compound.dims<M, K @HBM>>
!TILE = tensor<4x16xf32, #compound.dims<M, K @REG>>
!ROWS = tensor<4x64xf32, #compound.dims<M, K @HBM>>
!SUMS = tensor<8xf32, #compound.dims<M @HBM>>
!SUM = tensor<4xf32, #compound.dims<M @REG>>
!X = !dataflow.channel<push gather K : !SHARD -> !WHOLE>
!FLAGS = !dataflow.flags<4, [M = 2]>
collective.mesh @gpus {rank = 4}
func.func @main(%a: !WHOLE) -> !SUMS {
  %all = collective.spmd on @gpus ins(%a : !WHOLE) sharded [{K = ["rank"]}]
      outs(!SUMS) sharded [{}] {
  ^bb0(%shard: !SHARD):
    %p = dataflow.program ins(%shard : !SHARD) {
    ^bb0(%x: !SHARD):
      %recv = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !X
      %flags = dataflow.flags for %recv writers 1 : !X -> !FLAGS
      dataflow.kernel @send ins(%x, %recv, %flags : !SHARD, !X, !FLAGS) {
      ^bb0(%x1: !SHARD, %buf: !X, %f: !FLAGS):
        %epoch = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2] ins(%x1 : !SHARD) outs(!SHARD) {
        ^bb0(%tile: !TILE):
          schedule.yield %tile : !TILE
        }
        dataflow.signal %buf flags %f epoch %epoch release system fence : !X, !FLAGS
        dataflow.push %t to %buf epoch %epoch : !SHARD, !X
        dataflow.yield
      }
      %buffer = dataflow.buffer : !SUMS
      %sums = dataflow.kernel @sum ins(%recv, %flags : !X, !FLAGS)
          outs(%buffer : !SUMS) sources ["K"] {
      ^bb0(%buf: !X, %f: !FLAGS):
        %epoch = dataflow.epoch
        dataflow.wait %buf flags %f epoch %epoch acquire system arrivals 1 : !X, !FLAGS
        %y = dataflow.read %buf epoch %epoch : !X -> !WHOLE
        %s = schedule.spatial on grid [g0: M = 2] ins(%y : !WHOLE) outs(!SUMS) {
        ^bb0(%rows: !ROWS):
          %sum = schedule.temporal [K = 4, K = 1] ins(%rows : !ROWS) outs(!SUM)
              combine ["add"] {
          ^bb0(%tile: !TILE):
            %r = compound.reduce add %tile : !TILE -> !SUM
            schedule.yield %r : !SUM
          }
          schedule.yield %sum : !SUM
        }
        dataflow.yield %s : !SUMS
      } -> !SUMS
      dataflow.yield %sums : !SUMS
    } -> !SUMS
    collective.yield %p : !SUMS
  }
  func.return %all : !SUMS
}
