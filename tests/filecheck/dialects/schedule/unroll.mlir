// RUN: comet-opt %s | comet-opt | filecheck %s
// RUN: comet-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC
// RUN: comet-opt %s --print-op-generic | comet-opt | filecheck %s

// The subtiles of an epilogue, and the launch number that says how many.

!C = tensor<8x32xf16, #compound.dims<M, N @HBM>>
!t = tensor<4x32xf16, #compound.dims<M, N @HBM>>
!s = tensor<4x16xf16, #compound.dims<M, N @REG>>

func.func @f(%c: !C) -> !C {
  %r = schedule.spatial @r on grid [g0: M = 2] ins(%c : !C) outs(!C) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, subtiles = 2>} {
  ^bb0(%tile: !t):
    %u = schedule.temporal @r_epilogue [N = 2] unroll ins(%tile : !t) outs(!t) {
    ^bb0(%part: !s):
      schedule.yield %part : !s
    }
    schedule.yield %u : !t
  }
  func.return %r : !C
}

// CHECK:   schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, subtiles = 2>
// CHECK:   schedule.temporal @r_epilogue [N = 2] unroll ins(%tile : tensor<4x32xf16, #compound.dims<M, N @HBM>>) outs(

// GENERIC: "schedule.temporal"(%tile) <{node_name = "r_epilogue", loops = [#schedule.loop<N = 2>], unroll, operandSegmentSizes
