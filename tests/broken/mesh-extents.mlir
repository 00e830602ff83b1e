// RUN:
!x = tensor<8xf32, #compound.dims<M>>
func.func @f(%x: !x) -> !x {
  %y = collective.spmd on @edge ins(%x : !x) sharded [{}] outs(!x) sharded [{}] {
  ^bb0(%z: !x):
    collective.yield %z : !x
  }
  func.return %y : !x
}
"collective.mesh"() <{sym_name = "edge", axes = ["x"], extents = array<i64: 2, 2>}> : () -> ()
