// RUN: comet-opt %s -p order-operands | filecheck %s
// RUN: comet-opt %s -p outline-kernels,materialize-copies,order-operands,pad-blocks,map-grid,lower-to-triton | filecheck %s --check-prefix TRITON

!x = tensor<64x32xf16, #compound.dims<M, D @HBM>>
!dy = tensor<64x32xf16, #compound.dims<M, F @HBM>>
!dw = tensor<32x32xf32, #compound.dims<D, F @HBM>>
!xt = tensor<16x32xf16, #compound.dims<M, D @SMEM>>
!dyt = tensor<16x32xf16, #compound.dims<M, F @SMEM>>
!dwt = tensor<32x32xf32, #compound.dims<D, F @REG>>

// The loop adds products to dW<D, F>: its rows are those of X.

func.func @accumulated(%dy: !dy, %x: !x) -> !dw {
  %dw = schedule.spatial on grid [g0: D = 1] ins(%dy, %x : !dy, !x) outs(!dw) {
  ^bb0(%dy1: !dy, %x1: !x):
    %dw1 = schedule.temporal [M = 4] ins(%dy1, %x1 : !dy, !x) outs(!dwt) combine ["add"] {
    ^bb1(%dy2: !dyt, %x2: !xt):
      %part = compound.contract %dy2, %x2 : !dyt, !xt -> !dwt
      schedule.yield %part : !dwt
    }
    schedule.yield %dw1 : !dwt
  }
  func.return %dw : !dw
}

// CHECK-LABEL: func.func @accumulated
// CHECK:         %part = compound.contract %x{{.*}}, %dy{{.*}}

// TRITON-LABEL: tl.kernel @accumulated_kernel
// TRITON:         tl.dot {{.*}} acc
// TRITON-NOT:     tl.trans {{.*}}xf32

// The loop stores each product by itself: transposing one costs no second accumulator.

!dwp = tensor<16x32xf32, #compound.dims<D, F @REG>>
!xp = tensor<64x16xf16, #compound.dims<M, D @SMEM>>
!dyw = tensor<64x32xf16, #compound.dims<M, F @SMEM>>

func.func @stored(%dy: !dy, %x: !x) -> !dw {
  %dw = schedule.spatial on grid [g0: F = 1] ins(%dy, %x : !dy, !x) outs(!dw) {
  ^bb0(%dy1: !dyw, %x1: !x):
    %dw1 = schedule.temporal [D = 2] ins(%dy1, %x1 : !dyw, !x) outs(!dw) {
    ^bb1(%dy2: !dyw, %x2: !xp):
      %part = compound.contract %dy2, %x2 : !dyw, !xp -> !dwp
      schedule.yield %part : !dwp
    }
    schedule.yield %dw1 : !dw
  }
  func.return %dw : !dw
}

// CHECK-LABEL: func.func @stored
// CHECK:         %part = compound.contract %dy{{.*}}, %x{{.*}}
