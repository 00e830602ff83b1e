// RUN: comet-opt %s -p pad-blocks,map-grid | filecheck %s
// RUN: comet-opt %s -p outline-kernels,lower-to-triton | filecheck %s --check-prefix TRITON

!x = tensor<60x40xf32, #compound.dims<M, N @HBM>>
!xt = tensor<12x20xf32, #compound.dims<M, N @REG>>

// Blocks of 16 x 32 cover the tiles of 12 x 20: 4 x 2 programs, not 5 x 2.

func.func @two(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 5, g1: N = 2] ins(%x : !x) outs(!x) {
  ^bb0(%x1: !xt):
    %y1 = compound.map exp %x1 : !xt -> !xt
    schedule.yield %y1 : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @two
// CHECK:         blocks <M: 12 -> 16, N: 20 -> 32> programs <4 of 16 on 1, 2 of 32 on 0> ins(

// TRITON-LABEL: func.func @two
// TRITON:         tl.launch @two_kernel grid [2, 4]

// The launch asks for an L2 swizzle of groups of 2 programs along M.

func.func @swizzled(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 5, g1: N = 2] ins(%x : !x) outs(!x) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 1, group = 2>} {
  ^bb0(%x1: !xt):
    %y1 = compound.map exp %x1 : !xt -> !xt
    schedule.yield %y1 : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @swizzled
// CHECK:         programs <4 of 16 on 1, 2 of 32 on 0, swizzle 2> ins(

// TRITON-LABEL: tl.kernel @swizzled_kernel
// TRITON:         %pid_m, %pid_n = tl.swizzle2d
// TRITON-LABEL: func.func @swizzled
// TRITON:         tl.launch @swizzled_kernel grid [2, 4]

// With a swizzle, the loops before the last one share an axis: groups of 3 of these 24 programs advance along M together.

!v = tensor<6x8x10x60xf32, #compound.dims<A, B, C, M @HBM>>
!vt = tensor<1x2x10x12xf32, #compound.dims<A, B, C, M @REG>>

func.func @swizzled_rows(%v: !v) -> !v {
  %y = schedule.spatial on grid [g0: A = 6, g1: B = 4, g2: C = 1, g3: M = 5] ins(%v : !v) outs(!v) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 1, group = 3>} {
  ^bb0(%v1: !vt):
    %y1 = compound.map exp %v1 : !vt -> !vt
    schedule.yield %y1 : !vt
  }
  func.return %y : !v
}

// CHECK-LABEL: func.func @swizzled_rows
// CHECK:         programs <6 of 1 on 1, 4 of 2 on 1, 1 of 16 on 0, 4 of 16 on 0, swizzle 3> ins(

// TRITON-LABEL: tl.kernel @swizzled_rows_kernel
// TRITON:         %row, %pid_m = tl.swizzle2d %{{.*}}, %{{.*}} shape [24, 4] group 3
// TRITON:         %pid_b = tl.binary mod %row
// TRITON:         %a = tl.binary floordiv %row
// TRITON-LABEL: func.func @swizzled_rows
// TRITON:         tl.launch @swizzled_rows_kernel grid [4, 24]

// Of four loops the first two share an axis; a loop of one slice has one program.

!w = tensor<6x8x10x60xf32, #compound.dims<A, B, C, M @HBM>>
!wt = tensor<1x2x5x12xf32, #compound.dims<A, B, C, M @REG>>

func.func @four(%w: !w) -> !w {
  %y = schedule.spatial on grid [g0: A = 6, g1: B = 4, g2: C = 2, g3: M = 5] ins(%w : !w) outs(!w) {
  ^bb0(%w1: !wt):
    %y1 = compound.map exp %w1 : !wt -> !wt
    schedule.yield %y1 : !wt
  }
  func.return %y : !w
}

// CHECK-LABEL: func.func @four
// CHECK:         programs <6 of 1 on 2, 4 of 2 on 2, 2 of 8 on 1, 4 of 16 on 0> ins(

// TRITON-LABEL: func.func @four
// TRITON:         tl.launch @four_kernel grid [4, 2, 24]

// What a loop inside splits further is not padded; programs that are written already stay.

!st = tensor<30x40xf32, #compound.dims<M, N @HBM>>
!si = tensor<5x40xf32, #compound.dims<M, N @REG>>

func.func @split(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 2, g1: N = 1] ins(%x : !x) outs(!x) {
  ^bb0(%x1: !st):
    %y1 = schedule.temporal [M = 6] ins(%x1 : !st) outs(!st) {
    ^bb1(%x2: !si):
      %y2 = compound.map exp %x2 : !si -> !si
      schedule.yield %y2 : !si
    }
    schedule.yield %y1 : !st
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @split
// CHECK:         programs <2 of 30 on 0, 1 of 64 on 0> ins(

func.func @asked_for(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 5, g1: N = 2] programs <5 of 12 on 0, 2 of 20 on 0> ins(%x : !x) outs(!x) {
  ^bb0(%x1: !xt):
    %y1 = compound.map exp %x1 : !xt -> !xt
    schedule.yield %y1 : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @asked_for
// CHECK:         programs <5 of 12 on 0, 2 of 20 on 0> ins(

// TRITON-LABEL: func.func @asked_for
// TRITON:         tl.launch @asked_for_kernel grid [10]

// The launch is of 6 persistent programs: of 5 x 2 tiles, 4 x 2 blocks, each does the ones 6 further on.

func.func @persistent(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 5, g1: N = 2] ins(%x : !x) outs(!x) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 1, group = 2, persistent = 6>} {
  ^bb0(%x1: !xt):
    %y1 = compound.map exp %x1 : !xt -> !xt
    schedule.yield %y1 : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @persistent
// CHECK:         programs <4 of 16 on 1, 2 of 32 on 0, swizzle 2, persistent 6> ins(
// CHECK-SAME:    #schedule.launch<warps = 4, stages = 1, group = 2, persistent = 6>

// TRITON-LABEL: tl.kernel @persistent_kernel
// TRITON:         %program = tl.program_id 0
// TRITON:         tl.for %tile : i32 = %program : i32 to %{{.*}} : i32 step %{{.*}} : i32 {
// TRITON:           %pid_m, %pid_n = tl.swizzle2d %{{.*}}, %{{.*}} shape [4, 2] group 2
// TRITON-LABEL: func.func @persistent
// TRITON:         tl.launch @persistent_kernel grid [6]

// 8 programs for 8 tiles: each has one.

func.func @one_each(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 5, g1: N = 2] ins(%x : !x) outs(!x) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 1, group = 1, persistent = 8>} {
  ^bb0(%x1: !xt):
    %y1 = compound.map exp %x1 : !xt -> !xt
    schedule.yield %y1 : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @one_each
// CHECK:         programs <4 of 16 on 1, 2 of 32 on 0> ins(

// TRITON-LABEL: func.func @one_each
// TRITON:         tl.launch @one_each_kernel grid [2, 4]
