// RUN:
!x = tensor<8xf32, #compound.dims<M>>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !x) -> !x {
  %all = collective.spmd on @gpus ins(%x : !x) sharded [{}] outs(!x) sharded [{}] {
  ^bb0(%own: !x):
    collective.yield %x : !x
  }
  func.return %all : !x
}
