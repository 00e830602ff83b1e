// RUN: comet-opt %s -p outline-kernels,lower-to-triton --split-input-file | filecheck %s

!x = tensor<6x128xf32, #compound.dims<M, N @HBM>>
!m = tensor<6xf32, #compound.dims<M @HBM>>
!xr = tensor<3x128xf32, #compound.dims<M, N @HBM>>
!xt = tensor<3x16xf32, #compound.dims<M, N @REG>>
!mt = tensor<3xf32, #compound.dims<M @REG>>

// ptxas does not know the end of a loop of eight iterations: the grid has no axis 2.

func.func @rowsum(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!m) attributes {schedule.launch = #schedule.launch<warps = 2, stages = 3, group = 1>} {
  ^bb0(%x1: !xr):
    %sum1 = schedule.temporal [N = 8] ins(%x1 : !xr) outs(!mt) combine ["add"] {
    ^bb1(%x2: !xt):
      %part = compound.reduce add %x2 : !xt -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK:       tl.kernel @rowsum_kernel
// CHECK:         %zero = tl.program_id 2
// CHECK:         %end = tl.binary add %N, %zero : (!tl.constexpr<128>, i32) -> i32
// CHECK:         tl.for %n : i32 = %{{.*}} : i32 to %end : i32 step %BLOCK_N : !tl.constexpr<16>
// -----

!x = tensor<2x2x6x128xf32, #compound.dims<B, H, M, N @HBM>>
!m = tensor<2x2x6xf32, #compound.dims<B, H, M @HBM>>
!xr = tensor<1x1x3x128xf32, #compound.dims<B, H, M, N @HBM>>
!xt = tensor<1x1x3x16xf32, #compound.dims<B, H, M, N @REG>>
!mt = tensor<1x1x3xf32, #compound.dims<B, H, M @REG>>

// Nor does LLVM where the grid has an axis 2: its two programs never reach 2.

func.func @rowsums(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: B = 2, g1: H = 2, g2: M = 2] ins(%x : !x) outs(!m) attributes {schedule.launch = #schedule.launch<warps = 2, stages = 3, group = 1>} {
  ^bb0(%x1: !xr):
    %sum1 = schedule.temporal [N = 8] ins(%x1 : !xr) outs(!mt) combine ["add"] {
    ^bb1(%x2: !xt):
      %part = compound.reduce add %x2 : !xt -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK:       tl.kernel @rowsums_kernel
// CHECK:         %b = tl.program_id 2
// CHECK:         %[[AXIS:.*]] = tl.program_id 2
// CHECK-NEXT:    %[[PROGRAMS:.*]] = tl.constant 2 : i32
// CHECK-NEXT:    %zero = tl.binary floordiv %[[AXIS]], %[[PROGRAMS]] : (i32, i32) -> i32
// CHECK:         %end = tl.binary add %N, %zero : (!tl.constexpr<128>, i32) -> i32
// CHECK:         tl.for %n : i32 = %{{.*}} : i32 to %end : i32 step %BLOCK_N : !tl.constexpr<16>
