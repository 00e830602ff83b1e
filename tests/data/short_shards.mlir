func.func @main(%a0: tensor<7x48x7xf32, #compound.dims<L, N, M>> {collective.shard = {M = ["rank"]}}, %a1: tensor<2x48x7xf32, #compound.dims<K, N, L>> {collective.shard = {N = ["rank"]}}, %a2: tensor<7x7x2xbf16, #compound.dims<M, L, K>> {collective.shard = {K = ["rank"]}}) -> (tensor<7x2x48xf32, #compound.dims<L, K, N>> {collective.shard = {L = ["rank"]}}, tensor<7xf32, #compound.dims<L>> {collective.shard = {}}) {
  %v0 = compound.cast %a2 : tensor<7x7x2xbf16, #compound.dims<M, L, K>> -> tensor<7x7x2xf32, #compound.dims<M, L, K>>
  %v1 = compound.contract %v0, %a0 : tensor<7x7x2xf32, #compound.dims<M, L, K>>, tensor<7x48x7xf32, #compound.dims<L, N, M>> -> tensor<7x2x48xf32, #compound.dims<L, K, N>>
  %v2 = compound.index : tensor<2xi32, #compound.dims<K>>
  %v3 = compound.index : tensor<2xi32, #compound.dims<K>>
  %v4 = compound.map eq %v2, %v3 : tensor<2xi32, #compound.dims<K>>, tensor<2xi32, #compound.dims<K>> -> tensor<2xi1, #compound.dims<K>>
  %v5 = compound.map select %v4, %v0, %v1 : tensor<2xi1, #compound.dims<K>>, tensor<7x7x2xf32, #compound.dims<M, L, K>>, tensor<7x2x48xf32, #compound.dims<L, K, N>> -> tensor<2x7x7x48xf32, #compound.dims<K, M, L, N>>
  %v6 = compound.index : tensor<48xi32, #compound.dims<N>>
  %v7 = compound.index : tensor<7xi32, #compound.dims<L>>
  %v8 = compound.map gt %v6, %v7 : tensor<48xi32, #compound.dims<N>>, tensor<7xi32, #compound.dims<L>> -> tensor<48x7xi1, #compound.dims<N, L>>
  %v9 = compound.map select %v8, %v1, %v1 : tensor<48x7xi1, #compound.dims<N, L>>, tensor<7x2x48xf32, #compound.dims<L, K, N>>, tensor<7x2x48xf32, #compound.dims<L, K, N>> -> tensor<48x7x2xf32, #compound.dims<N, L, K>>
  %v10 = compound.reduce max %v5 : tensor<2x7x7x48xf32, #compound.dims<K, M, L, N>> -> tensor<7xf32, #compound.dims<L>>
  %v11 = compound.map add %v10, %v10 : tensor<7xf32, #compound.dims<L>>, tensor<7xf32, #compound.dims<L>> -> tensor<7xf32, #compound.dims<L>>
  %v12 = compound.map cos %v9 : tensor<48x7x2xf32, #compound.dims<N, L, K>> -> tensor<7x2x48xf32, #compound.dims<L, K, N>>
  func.return %v12, %v11 : tensor<7x2x48xf32, #compound.dims<L, K, N>>, tensor<7xf32, #compound.dims<L>>
}
