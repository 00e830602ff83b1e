// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},split{dim=K parts=4},fuse{strategy=auto},tile,outline-kernels' | filecheck %s --check-prefix BEFORE
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},split{dim=K parts=4},fuse{strategy=auto},tile,outline-kernels,merge-partials,verify-sync' | filecheck %s

// Split-K: two launches, or one in which the last of the four programs of a tile adds the parts.

!a = tensor<64x512xf16, #compound.dims<M, K>>
!b = tensor<512x96xf16, #compound.dims<K, N>>
!c = tensor<64x96xf32, #compound.dims<M, N>>

func.func @product(%a: !a, %b: !b) -> !c {
  %c = compound.contract %a, %b : !a, !b -> !c
  %d = compound.map exp %c : !c -> !c
  func.return %d : !c
}

// BEFORE:      %c_1 = dataflow.kernel @product_c_kernel
// BEFORE:        schedule.spatial @c on grid [g0: K_part = 4, g1: M = 4, g2: N = 6]
// BEFORE:      dataflow.barrier
// BEFORE:      dataflow.kernel @product_d_kernel
// BEFORE:        schedule.spatial @d on grid [g0: M = 16, g1: N = 3]

// CHECK:       func.func @product({{.*}} comet.merge = "product_c_kernel"
// CHECK:         %c_counters = dataflow.counters : !dataflow.counters<[M = 4, N = 6]>
// CHECK-NEXT:    %c_1, %d_2 = dataflow.kernel @product_c_kernel ins(%a_1, %b_1, %c_counters : {{.*}}) outs(%c, %d_1 : {{.*}}) {
// CHECK:           %c_2 = schedule.spatial @c on grid [g0: K_part = 4, g1: M = 4, g2: N = 6]
// CHECK:           %c_3 = dataflow.arrive %c_2 at %c_counters_1 arrivals 4 acq_rel gpu fence : {{.*}} at !dataflow.counters<[M = 4, N = 6]>
// CHECK-NEXT:      %c_4 = compound.rename %c_3 : {{.*}}<K_part, M, N @HBM>> -> {{.*}}<K_parts, M, N @HBM>>
// CHECK-NEXT:      %d_3 = schedule.spatial @d on grid [g0: M = 4, g1: N = 6]
// CHECK:           dataflow.yield %c_2, %d_3
// CHECK-NOT:     dataflow.barrier
