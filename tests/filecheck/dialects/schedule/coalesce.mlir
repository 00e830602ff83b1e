// RUN: comet-opt %s | filecheck %s
// RUN: comet-opt %s | comet-opt | filecheck %s
// RUN: comet-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC
// RUN: comet-opt %s --print-op-generic | comet-opt | filecheck %s

// A kernel has one loop over the iterations of both.

!x = tensor<6x4x12xf32, #compound.dims<M, H, N @HBM>>
!t = tensor<6x1x6xf32, #compound.dims<M, H, N @REG>>
!r = tensor<6xf32, #compound.dims<M @REG>>
func.func @f(%x: !x) -> !r {
  %r = schedule.temporal @r_h_n [H = 4, N = 2] coalesce ins(%x : !x) outs(!r) combine ["add"] {
  ^bb0(%tile: !t):
    %s = compound.reduce add %tile : !t -> !r
    schedule.yield %s : !r
  }
  func.return %r : !r
}

// CHECK:   schedule.temporal @r_h_n [H = 4, N = 2] coalesce ins(%x : tensor<6x4x12xf32, #compound.dims<M, H, N @HBM>>) outs(
// GENERIC: "schedule.temporal"(%x) <{node_name = "r_h_n", loops = [#schedule.loop<H = 4>, #schedule.loop<N = 2>], coalesce, combine = ["add"], operandSegmentSizes
