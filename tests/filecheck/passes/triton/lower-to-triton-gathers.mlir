// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s

// Ids are loaded once, where their slice begins, and before the loop over rows.

!table = tensor<9x32xf16, #compound.dims<V, D @HBM>>
!ids = tensor<6xi32, #compound.dims<T @HBM>>
!rows = tensor<6x32xf16, #compound.dims<T, D @HBM>>
!part = tensor<4x32xf16, #compound.dims<T, D @HBM>>
!tile = tensor<4x16xf16, #compound.dims<T, D @REG>>
!sums = tensor<6xf16, #compound.dims<T @HBM>>
!sum = tensor<4xf16, #compound.dims<T @REG>>

func.func @rowsum(%x: !table, %i: !ids) -> !sums {
  %r = compound.gather %x, %i along "V" : !table, !ids -> !rows
  %s = schedule.spatial on grid [g0: T = 2] ins(%r : !rows) outs(!sums) {
  ^bb0(%r1: !part):
    %s1 = schedule.temporal [D = 2] ins(%r1 : !part) outs(!sum) combine ["add"] {
    ^bb0(%r2: !tile):
      %s2 = compound.reduce add %r2 : !tile -> !sum
      schedule.yield %s2 : !sum
    }
    schedule.yield %s1 : !sum
  }
  func.return %s : !sums
}

// CHECK:      tl.kernel @rowsum_kernel(%x_ptr: !tl.ptr<f16>, %i_ptr: !tl.ptr<i32>, %s_ptr: !tl.ptr<f16>,
// CHECK:        %offs_t = tl.binary add
// CHECK-NEXT:   %3 = tl.addptr %i_ptr, %offs_t
// CHECK-NEXT:   %mask_t = tl.cmp lt %offs_t, %T
// CHECK-NEXT:   %4 = tl.constant 0 : i32
// CHECK-NEXT:   %i_tile = tl.load %3 mask %mask_t : tensor<4xi1> other %4 : i32 {tl.comment = "ids"}
// CHECK:        tl.for %d
// CHECK:          %8 = tl.expand_dims %i_tile [1]
// CHECK-NEXT:     %9 = tl.binary mul %8, %D
// CHECK-NEXT:     %10 = tl.addptr %x_ptr, %9
// CHECK:          %x_tile = tl.load
