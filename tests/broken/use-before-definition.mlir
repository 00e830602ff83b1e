// RUN:
func.func @main(%a: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %d = compound.map neg %c : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  %c = compound.map exp %a : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %d : tensor<4xf32, #compound.dims<M>>
}
