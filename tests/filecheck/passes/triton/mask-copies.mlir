// RUN: comet-opt %s -p materialize-copies,mask-copies | filecheck %s
// RUN: comet-opt %s -p outline-kernels,materialize-copies,pad-blocks,map-grid,mask-copies,lower-to-triton | filecheck %s --check-prefix TRITON

!x = tensor<6x40xf32, #compound.dims<M, N @HBM>>
!m = tensor<6xf32, #compound.dims<M @HBM>>
!xr = tensor<3x40xf32, #compound.dims<M, N @HBM>>
!xt = tensor<3x16xf32, #compound.dims<M, N @REG>>
!mt = tensor<3xf32, #compound.dims<M @REG>>

// Blocks of 4 do not divide 6 rows, nor tiles of 16 the 40 columns.

func.func @rowsum(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!m) {
  ^bb0(%x1: !xr):
    %sum1 = schedule.temporal [N = 3] ins(%x1 : !xr) outs(!mt) combine ["add"] {
    ^bb1(%x2: !xt):
      %part = compound.reduce add %x2 : !xt -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK-LABEL: func.func @rowsum
// CHECK:         schedule.copy %x2 mask ["M", "N"] : {{.*}} @REG>>
// CHECK:         schedule.copy %sum1 mask ["M"] : {{.*}} @HBM>>

// TRITON-LABEL: tl.kernel @rowsum_kernel
// TRITON:         tl.load %{{.*}} mask %{{.*}} : tensor<4x16xi1> other
// TRITON:         tl.store %{{.*}}, %sum1 mask %mask_m

// Tiles that divide need no mask. The whole of N is no power of two, and does.

!e = tensor<8x5xf32, #compound.dims<M, N @HBM>>
!et = tensor<2x5xf32, #compound.dims<M, N @REG>>

func.func @exact(%x: !e) -> !e {
  %y = schedule.spatial on grid [g0: M = 4] ins(%x : !e) outs(!e) {
  ^bb0(%x1: !et):
    %y1 = compound.map exp %x1 : !et -> !et
    schedule.yield %y1 : !et
  }
  func.return %y : !e
}

// CHECK-LABEL: func.func @exact
// CHECK:         schedule.copy %x1 mask ["N"] : {{.*}} @REG>>
// CHECK:         schedule.copy %y1 mask ["N"] : {{.*}} @HBM>>

// TRITON-LABEL: tl.kernel @exact_kernel
// TRITON-NOT:     %mask_m

// Of two loops over M, the inner one ends with its part: parts of 4 in tiles of 2 are exact.

!s = tensor<8x4xf32, #compound.dims<M, N @HBM>>
!sp = tensor<4x4xf32, #compound.dims<M, N @HBM>>
!st = tensor<2x4xf32, #compound.dims<M, N @REG>>

func.func @parts(%x: !s) -> !s {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : !s) outs(!s) {
  ^bb0(%x1: !sp):
    %y1 = schedule.temporal [M = 2] ins(%x1 : !sp) outs(!sp) {
    ^bb1(%x2: !st):
      %y2 = compound.map exp %x2 : !st -> !st
      schedule.yield %y2 : !st
    }
    schedule.yield %y1 : !sp
  }
  func.return %y : !s
}

// CHECK-LABEL: func.func @parts
// CHECK:         schedule.copy %x2 mask [] : {{.*}} @REG>>

// TRITON-LABEL: tl.kernel @parts_kernel
// TRITON-NOT:     mask
// TRITON:         tl.return

// Masks that are written already stay, and the kernel has them.

!at = tensor<2x4xf32, #compound.dims<M, N @REG>>
!av = tensor<2x4xf32, #compound.dims<M, N @HBM>>

func.func @asked_for(%x: !s) -> !s {
  %y = schedule.spatial on grid [g0: M = 4] ins(%x : !s) outs(!s) {
  ^bb0(%x1: !av):
    %x2 = schedule.copy %x1 mask ["M"] pad max : !av -> !at
    %y2 = schedule.copy %x2 : !at -> !av
    schedule.yield %y2 : !av
  }
  func.return %y : !s
}

// CHECK-LABEL: func.func @asked_for
// CHECK:         schedule.copy %x1 mask ["M"] pad max :
// CHECK:         schedule.copy %x2 mask [] :

// TRITON-LABEL: tl.kernel @asked_for_kernel
// TRITON:         tl.load {{.*}} mask
// TRITON-NOT:     tl.store {{.*}} mask
// TRITON:         tl.return
