// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{kernels="rows; columns; twice"},tile,outline-kernels,merge-launches' | filecheck %s

!x = tensor<24x40xf32, #compound.dims<M, K>>
!y = tensor<24xf32, #compound.dims<M>>
!s = tensor<40xf32, #compound.dims<K>>

// Sums along two dimensions need nothing of each other: one launch. What scales
// the first comes behind a barrier.

func.func @sums(%x: !x, %w: !y) -> (!y, !s) {
  %rows = compound.reduce add %x : !x -> !y
  %columns = compound.reduce add %x : !x -> !s
  %twice = compound.map mult %rows, %w : !y, !y -> !y
  func.return %twice, %columns : !y, !s
}

// CHECK:       func.func @sums({{.*}} comet.launches = "sums_rows_kernel sums_columns_kernel"
// CHECK:         %rows_1, %columns_2 = dataflow.kernel @sums_rows_kernel ins(%x_1 : {{.*}}) outs(%rows, %columns_1 : {{.*}}) {
// CHECK-NEXT:    ^bb{{.}}(%x_2: tensor<24x40xf32, #compound.dims<M, K @HBM>>):
// CHECK-NEXT:      %rows_2 = schedule.spatial @rows on grid [g0: M = 12] ins(%x_2 : {{.*}}) {{.*}}#schedule.launch<warps = 4, stages = 3, group = 1>
// CHECK:           %columns_3 = schedule.spatial @columns on grid [g0: K = 10] ins(%x_2 : {{.*}}) {{.*}}#schedule.launch<warps = 4, stages = 3, group = 1>
// CHECK:           dataflow.yield %rows_2, %columns_3 : {{.*}}
// CHECK-NEXT:    } -> {{.*}}
// CHECK-NEXT:    dataflow.barrier
// CHECK-NEXT:    %twice_2 = dataflow.kernel @sums_twice_kernel ins(%rows_1, %w_1 : {{.*}}) outs(%twice_1 : {{.*}}) {
// CHECK:         dataflow.yield %twice_2, %columns_2 : {{.*}}
