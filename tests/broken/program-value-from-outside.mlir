// RUN:
!x = tensor<8xf32, #compound.dims<M>>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !x) -> !x {
  %all = collective.spmd on @gpus ins(%x : !x) sharded [{}] outs(!x) sharded [{}] {
  ^bb0(%own: !x):
    %r = dataflow.program ins(%x : !x) {
    ^bb0(%in: !x):
      dataflow.yield %in : !x
    } -> !x
    collective.yield %r : !x
  }
  func.return %all : !x
}
