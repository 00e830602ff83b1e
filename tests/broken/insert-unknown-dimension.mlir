// RUN: insert-collectives

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}
func.func @main(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %y = compound.map exp %x {collective.shard = {K = ["cx"]}} : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %y : tensor<4x8xf32, #compound.dims<M, N>>
}
