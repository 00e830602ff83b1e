// RUN:

func.func @main(%a: tensor<4x8xf32>) {
  %c = compound.reduce add %a : tensor<4x8xf32> -> tensor<4xf32, #compound.dims<M>>
  func.return
}
