// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=full}' | filecheck %s

func.func @named(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}

// CHECK: fuse: @named is at the graph level and this pass takes the elementary or spmd level; run decompose first

// -----

func.func @wide(%x: tensor<4x8xf32, #compound.dims<M, N>>, %v: tensor<8x65536xf32, #compound.dims<N, E>>) -> (tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>) {
  %zero = compound.fill 0.0 : tensor<4xf32, #compound.dims<M>>
  %none = compound.fill 0.0 : tensor<4x65536xf32, #compound.dims<M, E>>
  %l, %o = compound.fold over "N" ins(%x, %v : tensor<4x8xf32, #compound.dims<M, N>>, tensor<8x65536xf32, #compound.dims<N, E>>) init(%zero, %none : tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>) step {
  ^bb0(%xs: tensor<4x8xf32, #compound.dims<M, N>>, %vs: tensor<8x65536xf32, #compound.dims<N, E>>, %l_old: tensor<4xf32, #compound.dims<M>>, %o_old: tensor<4x65536xf32, #compound.dims<M, E>>):
    %added = compound.reduce add %xs : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %l_new = compound.map add %l_old, %added : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    %xv = compound.contract %xs, %vs : tensor<4x8xf32, #compound.dims<M, N>>, tensor<8x65536xf32, #compound.dims<N, E>> -> tensor<4x65536xf32, #compound.dims<M, E>>
    %o_new = compound.map add %o_old, %xv : tensor<4x65536xf32, #compound.dims<M, E>>, tensor<4x65536xf32, #compound.dims<M, E>> -> tensor<4x65536xf32, #compound.dims<M, E>>
    compound.yield %l_new, %o_new : tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>
  } merge {
  ^bb1(%l1: tensor<4xf32, #compound.dims<M>>, %o1: tensor<4x65536xf32, #compound.dims<M, E>>, %l2: tensor<4xf32, #compound.dims<M>>, %o2: tensor<4x65536xf32, #compound.dims<M, E>>):
    %l3 = compound.map add %l1, %l2 : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    %o3 = compound.map add %o1, %o2 : tensor<4x65536xf32, #compound.dims<M, E>>, tensor<4x65536xf32, #compound.dims<M, E>> -> tensor<4x65536xf32, #compound.dims<M, E>>
    compound.yield %l3, %o3 : tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>
  } -> tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>
  func.return %l, %o : tensor<4xf32, #compound.dims<M>>, tensor<4x65536xf32, #compound.dims<M, E>>
}

// CHECK: fuse: the kernel that makes %l, %o needs {{[0-9]+}} bytes of REG and {{[0-9]+}} bytes of SMEM with its smallest tiles, more than fit beside addresses and buffers in the 262144 and 232448 bytes there; make a dimension smaller, or split it

// -----

func.func @constant(%x: tensor<4x65536xf32, #compound.dims<M, E>>) -> tensor<4x65536xf32, #compound.dims<M, E>> {
  %none = compound.fill 0.0 : tensor<4x65536xf32, #compound.dims<M, E>>
  func.return %none : tensor<4x65536xf32, #compound.dims<M, E>>
}

// CHECK: fuse: the kernel that makes %none needs 1081344 bytes of REG

// -----

func.func @padded(%x: tensor<4x3xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.pad %x <-inf from N = 3> : tensor<4x3xf32, #compound.dims<M, N>> -> tensor<4x4xf32, #compound.dims<M, N>>
  %m = compound.reduce max %y : tensor<4x4xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
  func.return %m : tensor<4xf32, #compound.dims<M>>
}

// CHECK: fuse: @padded has 'compound.pad', which GPUs read as parts of tensors; run lower-views before fuse

// -----

// Rows of a constant have only the dimensions of ids.

func.func @constant_rows(%i: tensor<5xi32, #compound.dims<T>>) -> tensor<5x6xf32, #compound.dims<T, D>> {
  %c = compound.fill 2.0 : tensor<8x6xf32, #compound.dims<V, D>>
  %r = compound.gather %c, %i along "V" : tensor<8x6xf32, #compound.dims<V, D>>, tensor<5xi32, #compound.dims<T>> -> tensor<5x6xf32, #compound.dims<T, D>>
  %e = compound.map exp %r : tensor<5x6xf32, #compound.dims<T, D>> -> tensor<5x6xf32, #compound.dims<T, D>>
  func.return %e : tensor<5x6xf32, #compound.dims<T, D>>
}

// CHECK: fuse: %e has the dimension D, which only constants have; make the constant an argument of the function

// -----

func.func @scattered(%x: tensor<7x4xf32, #compound.dims<T, D>>, %i: tensor<7xi32, #compound.dims<T>>) -> tensor<9x4xf32, #compound.dims<V, D>> {
  %y = compound.scatter_add %x, %i into "V" : tensor<7x4xf32, #compound.dims<T, D>>, tensor<7xi32, #compound.dims<T>> -> tensor<9x4xf32, #compound.dims<V, D>>
  func.return %y : tensor<9x4xf32, #compound.dims<V, D>>
}

// CHECK: fuse: 'compound.scatter_add' has values that no kernel makes; run lower-views before fuse

// -----

func.func @summed_again(%x: tensor<7xf32, #compound.dims<T>>, %i: tensor<7xi32, #compound.dims<T>>, %j: tensor<9xi32, #compound.dims<V>>) -> tensor<5xf32, #compound.dims<W>> {
  %e = compound.map exp %x : tensor<7xf32, #compound.dims<T>> -> tensor<7xf32, #compound.dims<T>>
  %s = compound.scatter_add %e, %i into "V" : tensor<7xf32, #compound.dims<T>>, tensor<7xi32, #compound.dims<T>> -> tensor<9xf32, #compound.dims<V>>
  %y = compound.scatter_add %s, %j into "W" : tensor<9xf32, #compound.dims<V>>, tensor<9xi32, #compound.dims<V>> -> tensor<5xf32, #compound.dims<W>>
  func.return %y : tensor<5xf32, #compound.dims<W>>
}

// CHECK: fuse: 'compound.scatter_add' has values that no kernel makes; run lower-views before fuse

// -----

func.func @needed_again(%x: tensor<7xf32, #compound.dims<T>>, %i: tensor<7xi32, #compound.dims<T>>) -> tensor<9xf32, #compound.dims<V>> {
  %e = compound.map exp %x : tensor<7xf32, #compound.dims<T>> -> tensor<7xf32, #compound.dims<T>>
  %c = compound.map ge %e, %x : tensor<7xf32, #compound.dims<T>>, tensor<7xf32, #compound.dims<T>> -> tensor<7xi1, #compound.dims<T>>
  %z = compound.fill 0.0 : tensor<i32, #compound.dims<>>
  %n = compound.map select %c, %i, %z : tensor<7xi1, #compound.dims<T>>, tensor<7xi32, #compound.dims<T>>, tensor<i32, #compound.dims<>> -> tensor<7xi32, #compound.dims<T>>
  %y = compound.scatter_add %e, %n into "V" : tensor<7xf32, #compound.dims<T>>, tensor<7xi32, #compound.dims<T>> -> tensor<9xf32, #compound.dims<V>>
  func.return %y : tensor<9xf32, #compound.dims<V>>
}

// CHECK: fuse: ids of a 'compound.scatter_add' depend on its values, or on other sums of these; run lower-views before fuse, or add other values

// -----

func.func @huge(%x: tensor<4503599627370497xf32, #compound.dims<M>>) -> tensor<4503599627370497xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<4503599627370497xf32, #compound.dims<M>> -> tensor<4503599627370497xf32, #compound.dims<M>>
  func.return %y : tensor<4503599627370497xf32, #compound.dims<M>>
}

// CHECK: fuse: %x of @huge has more than 9007199254740992 bytes, which no memory holds; make it smaller
