// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{kernels="rows; twice"},tile,outline-kernels,merge-launches{launches="sums_rows_kernel sums_twice_kernel"}' | filecheck %s

!x = tensor<24x40xf32, #compound.dims<M, K>>
!y = tensor<24xf32, #compound.dims<M>>

// CHECK: merge-launches: sums_twice_kernel and sums_rows_kernel need each other's results, or a collective is between them; launch them one after the other

func.func @sums(%x: !x, %w: !y) -> !y {
  %rows = compound.reduce add %x : !x -> !y
  %twice = compound.map mult %rows, %w : !y, !y -> !y
  func.return %twice : !y
}
