// RUN:
!x = tensor<8xf32, #compound.dims<M>>
collective.mesh @edge {x = 2}
func.func @f(%x: !x) -> !x {
  %y = "collective.spmd"(%x) <{mesh = @edge, in_shardings = [{}], out_shardings = [{}]}> ({
  ^bb0(%z: !x):
    %m = "compound.reduce"() <{kind = #compound<reduce_kind max>}> : () -> !x
    collective.yield %m : !x
  }) : (!x) -> !x
  func.return %y : !x
}
