// RUN: comet-opt %s -p materialize-copies --split-input-file --verify-diagnostics | filecheck %s

!x = tensor<4x6xf32, #compound.dims<M, N @DRAM>>
!t = tensor<2x6xf32, #compound.dims<M, N @OB>>

// CHECK: materialize-copies: schedule.temporal is no node on a launch grid; copies are for GPUs, accelerators transfer at the borders of nodes
func.func @accelerator(%x: !x) -> !x {
  %y = schedule.temporal [M = 2] ins(%x : !x) outs(!x) {
  ^bb0(%x1: !t):
    schedule.yield %x1 : !t
  }
  func.return %y : !x
}

// -----

!x = tensor<4x6xf32, #compound.dims<M, N @HBM>>
!t = tensor<2x6xf32, #compound.dims<M, N @REG>>
!v = tensor<6xf32, #compound.dims<N @HBM>>
!r = tensor<6xf32, #compound.dims<N @REG>>

// CHECK: materialize-copies: schedule.spatial merges tensor<6xf32, #compound.dims<N @HBM>> at another level than it is made, REG; split the dimension in a temporal loop instead
func.func @merged(%x: !x) -> !v {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!v) combine ["fold"] {
  ^bb0(%x1: !t):
    %zero = compound.fill 0.000000e+00 : !r
    %s = schedule.temporal [M = 2] ins(%x1 : !t) iter_args(%zero : !r) outs(!r) combine ["fold"] {
    ^bb1(%x2: tensor<1x6xf32, #compound.dims<M, N @REG>>, %old: !r):
      %part = compound.reduce add %x2 : tensor<1x6xf32, #compound.dims<M, N @REG>> -> !r
      %new = compound.map add %old, %part : !r, !r -> !r
      schedule.yield %new : !r
    }
    schedule.yield %s : !r
  } merge {
  ^bb2(%a: !r, %b: !r):
    %c = compound.map add %a, %b : !r, !r -> !r
    compound.yield %c : !r
  }
  func.return %y : !v
}

// -----

// CHECK: materialize-copies: @graph is at the elementary level and this pass takes the schedule or dataflow level; run fuse first
func.func @graph(%x: tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
  func.return %y : tensor<4xf32, #compound.dims<M>>
}
