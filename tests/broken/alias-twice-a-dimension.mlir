// RUN:

!X = tensor<4x4xf32, #compound.dims<M, M>>
func.func @main(%x: !X, %y: !X) -> !X {
  %z = compound.map add %x, %y : !X, !X -> !X
  func.return %z : !X
}
