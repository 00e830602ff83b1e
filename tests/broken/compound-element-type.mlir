// RUN:

func.func @main(%a: tensor<4x8xf16, #compound.dims<M, K>>, %b: tensor<8x2xf32, #compound.dims<K, N>>) {
  %c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf32, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
  func.return
}
