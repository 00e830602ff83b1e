// C = A B on four GPUs, written by hand at the dataflow level. Every GPU holds a quarter of the columns of A and all
// of B, and wants all of C.
//
// At this level one says what is launched, who sends what to whom in which blocks, and who waits for which of them.
// That is independent of how kernels compute. Here A travels in tiles of 32 x 16, and readers are signalled 32 rows at a
// time; the product is made of tiles of 16 x 32, with K in steps of 16. Nobody waits for all of A, no barrier stands
// anywhere, and nothing is cleared between launches: see docs/ir.md.
//
//   comet-opt samples/dataflow_all_gather_gemm.mlir \
//     -p 'attach-hardware{path="samples/hardware/h200x8.yaml"},triton-distributed{ranks=4 pattern=push}' -t triton

// In device memory: what a GPU holds of A, all of A, B, C.
!Shard = tensor<64x32xf16, #compound.dims<M, K @HBM>>
!A = tensor<64x128xf16, #compound.dims<M, K @HBM>>
!B = tensor<128x96xf16, #compound.dims<K, N @HBM>>
!C = tensor<64x96xf16, #compound.dims<M, N @HBM>>

// What one program sends.
!Sent = tensor<32x16xf16, #compound.dims<M, K @REG>>

// What one program of the product reads, the tiles it loads in turn, and what it makes of them.
!Rows = tensor<16x128xf16, #compound.dims<M, K @HBM>>
!Columns = tensor<128x32xf16, #compound.dims<K, N @HBM>>
!TileOfA = tensor<16x16xf16, #compound.dims<M, K @SMEM>>
!TileOfB = tensor<16x32xf16, #compound.dims<K, N @SMEM>>
!Sums = tensor<16x32xf32, #compound.dims<M, N @REG>>
!TileOfC = tensor<16x32xf16, #compound.dims<M, N @REG>>

// Every GPU gives its shard to the channel, and sees the shards of all, concatenated along K.
!Gather = !dataflow.channel<push gather K : !Shard -> !A>

collective.mesh @gpus {rank = 4} at {rank = "HBM"}

func.func @all_gather_gemm(%a: !A, %b: !B) -> !C {
  %c = collective.spmd on @gpus ins(%a, %b : !A, !B) sharded [{K = ["rank"]}, {}] outs(!C) sharded [{}] {
  ^bb0(%shard: !Shard, %weights: !B):
    %product = dataflow.program ins(%shard, %weights : !Shard, !B) {
    ^bb0(%own_a: !Shard, %own_b: !B):

      // A shard is signalled in two blocks of 32 rows, each as soon as it is there.
      %a_channel = dataflow.channel on @gpus ["rank"] blocks [M = 2] : !Gather

      // Four programs: each stores its tile into the receive buffers of all GPUs, then signals them. Two tiles make a block.
      dataflow.kernel @send ins(%own_a, %a_channel : !Shard, !Gather) {
      ^bb0(%a_share: !Shard, %to: !Gather):
        %sent = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%a_share : !Shard) outs(!Shard) {
        ^bb0(%tile: !Sent):
          schedule.yield %tile : !Sent
        }
        dataflow.push %sent to %to : !Shard, !Gather
        dataflow.signal %to : !Gather
        dataflow.yield
      }

      // Twelve programs. K has two rows: the first visits the GPUs that sent something, the own one first, and waits
      // for the block that the program needs; the second loops over that shard, and waits for nothing.
      %buffer = dataflow.buffer : !C
      %result = dataflow.kernel @multiply ins(%a_channel, %own_b : !Gather, !B) outs(%buffer : !C)
          sources ["K"] {
      ^bb0(%from: !Gather, %b_all: !B):
        dataflow.wait %from : !Gather
        %a_all = dataflow.read %from : !Gather -> !A
        %tiles = schedule.spatial on grid [g0: M = 4, g1: N = 3] ins(%a_all, %b_all : !A, !B) outs(!C)
            attributes {schedule.launch = #schedule.launch<warps = 4, stages = 3, group = 1>} {
        ^bb0(%rows: !Rows, %columns: !Columns):
          %sums = schedule.temporal [K = 4, K = 2] ins(%rows, %columns : !Rows, !Columns) outs(!Sums) combine ["add"] {
          ^bb0(%a_tile: !TileOfA, %b_tile: !TileOfB):
            %step = compound.contract %a_tile, %b_tile : !TileOfA, !TileOfB -> !Sums
            schedule.yield %step : !Sums
          }
          %c_tile = compound.cast %sums : !Sums -> !TileOfC
          schedule.yield %c_tile : !TileOfC
        }
        dataflow.yield %tiles : !C
      } -> !C
      dataflow.yield %result : !C
    } -> !C
    collective.yield %product : !C
  }
  func.return %c : !C
}

// What the program means. The emitted module checks itself against it.
!WholeA = tensor<64x128xf16, #compound.dims<M, K>>
!WholeB = tensor<128x96xf16, #compound.dims<K, N>>
!WholeC = tensor<64x96xf32, #compound.dims<M, N>>
func.func private @all_gather_gemm__reference(%a: !WholeA, %b: !WholeB) -> !WholeC attributes {comet.reference} {
  %c = compound.contract %a, %b : !WholeA, !WholeB -> !WholeC
  func.return %c : !WholeC
}
