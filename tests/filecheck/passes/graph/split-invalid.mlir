// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'split{dim=K parts=4}' | filecheck %s

func.func @f(%x: tensor<4x6xf32, #compound.dims<M, K>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<4x6xf32, #compound.dims<M, K>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: split: K = 6 of @f has no 4 parts of one extent; parts may be 1, 2, 3, 6

// -----

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, K>>) -> tensor<4x8xf32, #compound.dims<M, K>> {
  %m = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x8xf32, #compound.dims<M, K>>
  func.return %m : tensor<4x8xf32, #compound.dims<M, K>>
}

// CHECK: split: @f returns a value with K; split a dimension that is reduced

// -----

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, K>>) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.rename %x : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x8xf32, #compound.dims<M, N>>
  %m = compound.reduce max %y : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: split: 'compound.rename' of @f reads K as one dimension; split another one

// -----

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: split: no value has the dimension K; the dimensions of the module are M, N

// -----

func.func @f(%x: tensor<4x9xf32, #compound.dims<M, K>>) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.slice %x "K" [1, 8] : tensor<4x9xf32, #compound.dims<M, K>> -> tensor<4x8xf32, #compound.dims<M, K>>
  %m = compound.reduce max %y : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: split: 'compound.slice' of @f reads K as one dimension; split another one

// -----

func.func @f(%x: tensor<8x4xf32, #compound.dims<K, D>>, %i: tensor<5xi32, #compound.dims<T>>) -> tensor<5xf32, #compound.dims<T>> {
  %y = compound.gather %x, %i along "K" : tensor<8x4xf32, #compound.dims<K, D>>, tensor<5xi32, #compound.dims<T>> -> tensor<5x4xf32, #compound.dims<T, D>>
  %m = compound.reduce max %y : tensor<5x4xf32, #compound.dims<T, D>> -> tensor<5xf32, #compound.dims<T>>
  func.return %m : tensor<5xf32, #compound.dims<T>>
}

// CHECK: split: 'compound.gather' of @f reads K as one dimension; split another one

// -----

func.func @f(%x: tensor<8x4xf32, #compound.dims<K, D>>, %i: tensor<8xi32, #compound.dims<K>>) -> tensor<5x4xf32, #compound.dims<V, D>> {
  %y = compound.scatter_add %x, %i into "V" : tensor<8x4xf32, #compound.dims<K, D>>, tensor<8xi32, #compound.dims<K>> -> tensor<5x4xf32, #compound.dims<V, D>>
  func.return %y : tensor<5x4xf32, #compound.dims<V, D>>
}

// CHECK: split: 'compound.scatter_add' of @f reads K as one dimension; split another one

// -----

func.func @f(%x: tensor<6x4xf32, #compound.dims<A, B>>) -> tensor<f32, #compound.dims<>> {
  %y = compound.rename %x merge "A" : tensor<6x4xf32, #compound.dims<A, B>> -> tensor<24xf32, #compound.dims<K>>
  %m = compound.reduce max %y : tensor<24xf32, #compound.dims<K>> -> tensor<f32, #compound.dims<>>
  func.return %m : tensor<f32, #compound.dims<>>
}

// CHECK: split: 'compound.rename' of @f reads K as one dimension; split another one
