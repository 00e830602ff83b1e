// RUN: comet-opt %s -p outline-kernels | filecheck %s
// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s --check-prefix TL

// What scatters the result of a node is in its kernel, which adds to a buffer of zeros.

!values = tensor<6x4xf32, #compound.dims<T, D @HBM>>
!ids = tensor<6xi32, #compound.dims<T @HBM>>
!sums = tensor<9x4xf32, #compound.dims<V, D @HBM>>
!tile = tensor<4x4xf32, #compound.dims<T, D @REG>>

func.func @f(%x: !values, %i: !ids) -> (!sums, !values) {
  %e = schedule.spatial on grid [g0: T = 2] ins(%x : !values) outs(!values) {
  ^bb0(%x1: tensor<4x4xf32, #compound.dims<T, D @REG>>):
    %e1 = compound.map exp %x1 : !tile -> !tile
    schedule.yield %e1 : !tile
  }
  %s = compound.scatter_add %e, %i into "V" : !values, !ids -> !sums
  func.return %s, %e : !sums, !values
}

// CHECK:      %e_1 = dataflow.buffer : tensor<6x4xf32, #compound.dims<T, D @HBM>>
// CHECK-NEXT: %s_1 = dataflow.buffer zeroed : tensor<9x4xf32, #compound.dims<V, D @HBM>>
// CHECK-NEXT: %e_2, %s_2 = dataflow.kernel @f_kernel ins(%x_1, %i_1
// CHECK:        %e_3 = schedule.spatial
// CHECK:        %s_3 = compound.scatter_add %e_3, %i_2 into "V"
// CHECK-NEXT:   dataflow.yield %e_3, %s_3
// CHECK:      dataflow.yield %s_2, %e_2

// TL:       tl.kernel @f_kernel(%x_ptr: !tl.ptr<f32>, %i_ptr: !tl.ptr<i32>, %e_ptr: !tl.ptr<f32>, %s_ptr: !tl.ptr<f32>,
// TL:         %i_tile = tl.load
// TL:         tl.store
// TL:         %[[ROW:.*]] = tl.expand_dims %i_tile [1]
// TL-NEXT:    %[[STEP:.*]] = tl.binary mul %[[ROW]], %D
// TL-NEXT:    tl.addptr %s_ptr, %[[STEP]]
// TL:         tl.atomic_add
// TL:       func.func @f
// TL-NEXT:    %e = tl.empty : tensor<6x4xf32
// TL-NEXT:    %s = tl.empty : tensor<9x4xf32
// TL-NEXT:    tl.clear %s
// TL-NEXT:    tl.launch @f_kernel
