// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed' -t triton | filecheck %s

// A tile computes the numbers of its own positions; the seed is a number in memory.

!X = tensor<32x64xf32, #compound.dims<M, N>>
!M = tensor<32xi32, #compound.dims<M>>
!N = tensor<64xi32, #compound.dims<N>>
!SEED = tensor<i64, #compound.dims<>>
func.func @dropout(%x: !X, %seed: !SEED) -> !X {
  %m = compound.index : !M
  %n = compound.index : !N
  %width = compound.fill 64.0 : tensor<i32, #compound.dims<>>
  %rows = compound.map mult %m, %width : !M, tensor<i32, #compound.dims<>> -> !M
  %i = compound.map add %rows, %n : !M, !N -> tensor<32x64xi32, #compound.dims<M, N>>
  %u = compound.map random %seed, %i : !SEED, tensor<32x64xi32, #compound.dims<M, N>> -> !X
  %p = compound.fill 0.25 : tensor<f32, #compound.dims<>>
  %kept = compound.map ge %u, %p : !X, tensor<f32, #compound.dims<>> -> tensor<32x64xi1, #compound.dims<M, N>>
  %zero = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %y = compound.map select %kept, %x, %zero : tensor<32x64xi1, #compound.dims<M, N>>, !X, tensor<f32, #compound.dims<>> -> !X
  func.return %y : !X
}

// CHECK:      from comet.philox import philox
// CHECK:          seed_tile = tl.load(seed_ptr)  # HBM -> REG
// CHECK-NEXT:     x_tile = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :])  # HBM -> REG
// CHECK-NEXT:     rows = offs_m * 64  # compound.map mult
// CHECK-NEXT:     i = rows[:, None] + offs_n[None, :]  # compound.map add
// CHECK-NEXT:     u = tl.rand(seed_tile, i)  # compound.map random
// CHECK-NEXT:     kept = u >= 0.25  # compound.map ge
// CHECK-NEXT:     y = tl.where(kept, x_tile, 0.0)  # compound.map select
// CHECK:          u = philox(np.asarray(seed), np.asarray(i))
