// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s

!x = tensor<6x40xf16, #compound.dims<M, N @HBM>>
!m = tensor<6xf32, #compound.dims<M @HBM>>
!xr = tensor<3x40xf16, #compound.dims<M, N @HBM>>
!xt = tensor<3x16xf16, #compound.dims<M, N @REG>>
!wide = tensor<3x16xf32, #compound.dims<M, N @REG>>
!mt = tensor<3xf32, #compound.dims<M @REG>>

// Tiles of 3 x 16 become blocks of 4 x 16, masked where the tensor ends.

func.func @rowsum(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!m) attributes {schedule.launch = #schedule.launch<warps = 2, stages = 3, group = 1>} {
  ^bb0(%x1: !xr):
    %sum1 = schedule.temporal [N = 3] ins(%x1 : !xr) outs(!mt) combine ["add"] {
    ^bb1(%x2: !xt):
      %wide = compound.cast %x2 : !xt -> !wide
      %part = compound.reduce add %wide : !wide -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK:       tl.kernel @rowsum_kernel(%x_ptr: !tl.ptr<f16>, %sum_ptr: !tl.ptr<f32>, %M: !tl.constexpr<6>, %N: !tl.constexpr<40>, %BLOCK_M: !tl.constexpr<4>, %BLOCK_N: !tl.constexpr<16>) attributes {tl.comment = "schedule.spatial on grid [g0: M = 2]"} {
// CHECK-NEXT:    %0 = tl.program_id 0
// CHECK-NEXT:    %1 = tl.binary mul %0, %BLOCK_M : (i32, !tl.constexpr<4>) -> i32
// CHECK-NEXT:    %2 = tl.arange %BLOCK_M : !tl.constexpr<4> -> tensor<4xi32>
// CHECK-NEXT:    %offs_m = tl.binary add %1, %2 : (i32, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT:    %mask_m = tl.cmp lt %offs_m, %M : (tensor<4xi32>, !tl.constexpr<6>) -> tensor<4xi1>
// CHECK-NEXT:    %3 = tl.full 0.000000e+00 : f32 dims %BLOCK_M : !tl.constexpr<4> -> tensor<4xf32>
// CHECK-NEXT:    %4 = tl.constant 0 : i32
// CHECK-NEXT:    %sum1 = tl.for %n : i32 = %4 : i32 to %N : !tl.constexpr<40> step %BLOCK_N : !tl.constexpr<16> iter_args(%sum1_1 = %3) -> (tensor<4xf32>) {
// CHECK-NEXT:      %5 = tl.arange %BLOCK_N : !tl.constexpr<16> -> tensor<16xi32>
// CHECK-NEXT:      %offs_n = tl.binary add %n, %5 : (i32, tensor<16xi32>) -> tensor<16xi32>
// CHECK-NEXT:      %mask_n = tl.cmp lt %offs_n, %N : (tensor<16xi32>, !tl.constexpr<40>) -> tensor<16xi1>
// CHECK:           %x_tile = tl.load %{{.*}} mask %{{.*}} : tensor<4x16xi1> other %{{.*}} : f16 {tl.comment = "HBM -> REG"} : tensor<4x16x!tl.ptr<f16>> -> tensor<4x16xf16>
// CHECK-NEXT:      %wide = tl.cast %x_tile {tl.comment = "compound.cast"} : tensor<4x16xf16> -> tensor<4x16xf32>
// CHECK-NEXT:      %{{.*}} = tl.reduce sum %wide axis 1 {tl.comment = "compound.reduce add over N"} : tensor<4x16xf32> -> tensor<4xf32>
// CHECK-NEXT:      %{{.*}} = tl.binary add %sum1_1, %{{.*}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      tl.yield %{{.*}} : tensor<4xf32>
// CHECK-NEXT:    } {tl.comment = "schedule.temporal [N = 3] combine add"}
// CHECK-NEXT:    %{{.*}} = tl.addptr %sum_ptr, %offs_m : (!tl.ptr<f32>, tensor<4xi32>) -> tensor<4x!tl.ptr<f32>>
// CHECK-NEXT:    tl.store %{{.*}}, %sum1 mask %mask_m : tensor<4xi1> {tl.comment = "REG -> HBM"} : tensor<4x!tl.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:    tl.return
// CHECK:       func.func @rowsum(%x: tensor<6x40xf16, #compound.dims<M, N @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
// CHECK-NEXT:    %sum = tl.empty : tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:    tl.launch @rowsum_kernel grid [2] warps 2 stages 3 on %x, %sum : tensor<6x40xf16, #compound.dims<M, N @HBM>>, tensor<6xf32, #compound.dims<M @HBM>>
// CHECK-NEXT:    func.return %sum : tensor<6xf32, #compound.dims<M @HBM>>

// A body may make what it stores where it is stored.

!f = tensor<6x40xf32, #compound.dims<M, N @HBM>>
!ft = tensor<3x40xf32, #compound.dims<M, N @HBM>>

func.func @ones(%x: !f) -> !f {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : !f) outs(!f) {
  ^bb0(%x1: !ft):
    %y1 = compound.fill 1.0 : !ft
    schedule.yield %y1 : !ft
  }
  func.return %y : !f
}

// CHECK:       tl.kernel @ones_kernel
// CHECK:         tl.store %{{.*}}, %y1 mask %{{.*}} : tensor<4x64xi1> {tl.comment = "HBM -> HBM"}
