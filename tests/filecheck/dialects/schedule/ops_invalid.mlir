// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: factor 0 of N is not positive; write 1 or more
"test.op"() {loop = #schedule.loop<N = 0>} : () -> ()

// -----

// CHECK: launch numbers are positive
"test.op"() {launch = #schedule.launch<warps = 4, stages = 0, group = 1>} : () -> ()

// -----

// CHECK: a block of 6 elements for a tile of M = 5; write a power of two that is at least the tile
"test.op"() {blocks = #schedule.blocks<N: 4 -> 4, M: 5 -> 6>} : () -> ()

// -----

// CHECK: a block of 4 elements for a tile of M = 5; write a power of two that is at least the tile
"test.op"() {blocks = #schedule.blocks<M: 5 -> 4>} : () -> ()

// -----

// CHECK: programs, their elements and swizzles are positive
"test.op"() {programs = #schedule.programs<2 of 0 on 0>} : () -> ()

// -----

// CHECK: a launch grid has axes 0 to 2, not 3
"test.op"() {programs = #schedule.programs<2 of 4 on 0, 8 of 1 on 3, swizzle 2>} : () -> ()

// -----

// CHECK: 6 persistent programs for 6 tiles; leave `persistent` out where each tile has a program
"test.op"() {programs = #schedule.programs<2 of 4 on 0, 3 of 1 on 1, persistent 6>} : () -> ()

// -----

// CHECK: launch numbers are positive
"test.op"() {launch = #schedule.launch<warps = 4, stages = 1, group = 1, persistent = -1>} : () -> ()

// -----

// CHECK: only persistent programs are resident
"test.op"() {launch = #schedule.launch<warps = 4, stages = 1, group = 1, persistent = 0, resident>} : () -> ()

// -----

// CHECK: cluster is a power of two, got 3; take 2 or 4
"test.op"() {launch = #schedule.launch<warps = 4, stages = 1, group = 1, cluster = 3>} : () -> ()

// -----

// CHECK: programs that are clusters are not persistent, and have no producer warps
"test.op"() {launch = #schedule.launch<warps = 4, stages = 1, group = 1, persistent = 4, cluster = 2>} : () -> ()

// -----

// CHECK: programs that are clusters are not persistent, and have no producer warps
"test.op"() {launch = #schedule.launch<warps = 4, stages = 1, group = 1, specialize, cluster = 2>} : () -> ()

// -----

// CHECK: warps is a power of two, got 3; take 2 or 4
"test.op"() {launch = #schedule.launch<warps = 3, stages = 1, group = 1>} : () -> ()

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op loops over K, which no operand has
%c = "test.op"() : () -> !C
%m = schedule.temporal [K = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has 1 operands and 2 block arguments
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t, %u: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.temporal' op has 1 results and yields 0
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  schedule.yield
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has 1 results and 2 combiners
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["max", "add"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has no combiner 'min'; there are none, add, max, fold, same, root
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["min"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
// CHECK: 'schedule.temporal' op tensor<8x4xf32, #compound.dims<M, N @OB>> is not a tile of tensor<8x12xf16, #compound.dims<M, N @GB>>: names and element type stay
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: tensor<8x4xf32, #compound.dims<M, N @OB>>):
  %m = compound.reduce max %t : tensor<8x4xf32, #compound.dims<M, N @OB>> -> tensor<8xf32, #compound.dims<M @OB>>
  schedule.yield %m : tensor<8xf32, #compound.dims<M @OB>>
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op values of a schedule live at a memory level; tensor<8x12xf16, #compound.dims<M, N @GB>> over tensor<8x4xf16, #compound.dims<M, N>> lacks one
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: tensor<8x4xf16, #compound.dims<M, N>>):
  %m = compound.reduce max %t : tensor<8x4xf16, #compound.dims<M, N>> -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op result has M = 7, the operands have 8
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(tensor<7xf16, #compound.dims<M @GB>>) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op factor 2 of N = 12 does not give tiles of 4
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op factor 2 of M = 8 does not give tiles of 8
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op result tensor<8xf16, #compound.dims<M @GB>> does not have the looped dimension N and names no combiner (add, max, fold, same or root)
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R)  {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.temporal' op result tensor<8x12xf16, #compound.dims<M, N @GB>> has every looped dimension; there is nothing to combine by max
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!C) combine ["max"] {
^bb0(%t: !t):
  schedule.yield %t : !t
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op loops have no axis, got x: N
%c = "test.op"() : () -> !C
%m = schedule.temporal [x: N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has more than two loops over N: one for even parts, one for their tiles
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 1, N = 1, N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op result combined by fold starts from an iter_arg
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["fold"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has iterations, not instances: no combiner 'root'
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["root"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op has one iter_arg for each `fold` result, of its type
%c = "test.op"() : () -> !C
%z = compound.fill 0.0 : !r
%m = schedule.temporal [N = 3] ins(%c : !C) iter_args(%z, %z : !r, !r) outs(!R) combine ["fold"] {
^bb0(%t: !t, %o: !r, %p: !r):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op dimension M has extent 8 and 7; operands that share a dimension share its extent
%c = "test.op"() : () -> !C
%d = "test.op"() : () -> tensor<7xf16, #compound.dims<M @GB>>
%m = schedule.temporal [N = 3] ins(%c, %d : !C, tensor<7xf16, #compound.dims<M @GB>>) outs(!R) combine ["max"] {
^bb0(%t: !t, %u: tensor<7xf16, #compound.dims<M @GB>>):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!t = tensor<8x4xf16, #compound.dims<M, N @OB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.temporal' op combines by add a result that needs max
%c = "test.op"() : () -> !C
%m = schedule.temporal [N = 3] ins(%c : !C) outs(!R) combine ["add"] {
^bb0(%t: !t):
  %m = compound.reduce max %t : !t -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'compound.reduce' op add of a value that is partial(max) over axis 'loop N (0)'; a collective.all_reduce max is missing
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 2, N = 3] ins(%c : !C) outs(tensor<f16, #compound.dims<@GB>>) combine ["max"] {
^bb0(%t: tensor<4x4xf16, #compound.dims<M, N @OB>>):
  %a = compound.reduce max %t : tensor<4x4xf16, #compound.dims<M, N @OB>> -> tensor<4xf16, #compound.dims<M @OB>>
  %b = compound.reduce add %a : tensor<4xf16, #compound.dims<M @OB>> -> tensor<f16, #compound.dims<@OB>>
  schedule.yield %b : tensor<f16, #compound.dims<@OB>>
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op loop over N has no axis
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op names axis x twice
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2, x: M = 1] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op mesh @m has no axis z; its axes are x, y
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [z: N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op there is no mesh @m
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op factor 2 on axis y is neither 1 nor its extent, 3
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [y: N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op factor 3 of N = 12 does not give tiles of 6
%c = "test.op"() : () -> !C
%m = schedule.spatial on grid [g0: N = 3] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.spatial' op result tensor<f16, #compound.dims<@GB>> needs two combiners, add and same; split the node
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2, y: M = 3] ins(%c : !C) outs(tensor<f16, #compound.dims<@GB>>) combine ["max"] {
^bb0(%t: tensor<3x6xf16, #compound.dims<M, N @OB>>):
  %e = compound.extent "N" of %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<f16, #compound.dims<@OB>>
  schedule.yield %e : tensor<f16, #compound.dims<@OB>>
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'collective.all_reduce' op axis 'y' is not one of an enclosing spatial node
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  %a = collective.all_reduce max %m on @m ["y"] : !r -> !r
  schedule.yield %a : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'collective.all_reduce' op reduces by max over axis 'x' a value that is partial(add)
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["same"] {
^bb0(%t: !h):
  %m = compound.reduce add %t : !h -> !r
  %a = collective.all_reduce max %m on @m ["x"] : !r -> !r
  schedule.yield %a : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op result tensor<8xf16, #compound.dims<M @GB>> is held by instance 1 of x only; a collective.broadcast is missing
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["root"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  %g = collective.gather "P" %m root 1 on @m ["x"] : !r -> tensor<8x2xf16, #compound.dims<M, P @OB>>
  %n = compound.reduce max %g : tensor<8x2xf16, #compound.dims<M, P @OB>> -> !r
  schedule.yield %n : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op has a merge region if, and only if, it has results combined by fold
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["fold"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op has a merge region if, and only if, it has results combined by fold
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["max"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
} merge {
^bb0(%p: !r, %q: !r):
  %s = compound.map max %p, %q : !r, !r -> !r
  compound.yield %s : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op region merge takes the fold results of two instances
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["fold"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
} merge {
^bb0(%q: !r):
  %s = compound.map max %q, %q : !r, !r -> !r
  compound.yield %s : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
!h = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.spatial' op region merge ends in a compound.yield of the fold results of one instance
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m = schedule.spatial on @m [x: N = 2] ins(%c : !C) outs(!R) combine ["fold"] {
^bb0(%t: !h):
  %m = compound.reduce max %t : !h -> !r
  schedule.yield %m : !r
} merge {
^bb0(%p: !r, %q: !r):
  %s = compound.map max %p, %q : !r, !r -> !r
  compound.yield %p, %q : !r, !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!r = tensor<8xf16, #compound.dims<M @OB>>
// CHECK: 'schedule.spatial' op results combined by fold lack different looped dimensions; let all lack the same
collective.mesh @m {x = 2, y = 3}
%c = "test.op"() : () -> !C
%m:2 = schedule.spatial on @m [x: N = 2, y: M = 3] ins(%c : !C) outs(!R, tensor<f16, #compound.dims<@GB>>) combine ["fold", "fold"] {
^bb0(%t: tensor<3x6xf16, #compound.dims<M, N @OB>>):
  %m = compound.reduce max %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
  %o = compound.reduce max %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<f16, #compound.dims<@OB>>
  schedule.yield %m, %o : tensor<3xf16, #compound.dims<M @OB>>, tensor<f16, #compound.dims<@OB>>
} merge {
^bb0(%p: !r, %q: !r):
  %s = compound.map max %p, %q : !r, !r -> !r
  compound.yield %s : !r
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.copy' op is in the body of a node
%c = "test.op"() : () -> !C
%d = schedule.copy %c : !C -> tensor<8x12xf16, #compound.dims<M, N @OB>>

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.copy' op moves a tile from one memory level to another, not tensor<8x12xf16, #compound.dims<M, N @GB>> to tensor<8x12xf16, #compound.dims<M, N @GB>>
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 1] ins(%c : !C) outs(!C) {
^bb0(%t: !C):
  %u = schedule.copy %t : !C -> !C
  schedule.yield %u : !C
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x6xf16, #compound.dims<M, N @OB>>
// CHECK: 'schedule.copy' op changes the memory level only, not tensor<8x12xf16, #compound.dims<M, N @GB>> to tensor<8x6xf16, #compound.dims<M, N @OB>>
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 1] ins(%c : !C) outs(!t) {
^bb0(%t: !C):
  %u = schedule.copy %t : !C -> !t
  schedule.yield %u : !t
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<4x12xf16, #compound.dims<M, N @OB>>
!u = tensor<4x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.temporal' op turns tensor<8x12xf16, #compound.dims<M, N @GB>> into tensor<4x12xf16, #compound.dims<M, N @OB>> at its border, in a tree with copies; write a schedule.copy
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 2] ins(%c : !C) outs(!C) {
^bb0(%t: !t):
  %u = schedule.copy %t : !t -> !u
  schedule.yield %u : !u
}

// -----

!R = tensor<4xf32, #compound.dims<M @GB>>
!t = tensor<2xf32, #compound.dims<M @GB>>
%a = "test.op"() : () -> !R
%b = schedule.temporal @exp_gb [M = 2] ins(%a : !R) outs(!R) {
^bb0(%t: !t):
  %e = compound.map exp %t : !t -> !t
  schedule.yield %e : !t
}
// CHECK: 'schedule.temporal' op is named @exp_gb, as another node is: a plan could not tell them apart; give it another name
%c = schedule.temporal @exp_gb [M = 2] ins(%b : !R) outs(!R) {
^bb0(%t: !t):
  %e = compound.map exp %t : !t -> !t
  schedule.yield %e : !t
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<4x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.temporal' op operand `with` is a tensor, tensor<8x12xf16, #compound.dims<M, N @GB>>; make it an operand `ins`, which is sliced
%c = "test.op"() : () -> !C
%m = schedule.temporal [M = 2] ins(%c : !C) with(%c : !C) outs(!C) {
^bb0(%t: !t, %whole: !C):
  schedule.yield %t : !t
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<4x12xf16, #compound.dims<M, N @GB>>
// CHECK: 'schedule.spatial' op operand `with` of type !dataflow.epoch has the type !dataflow.flags<2, []> in the body
%c = "test.op"() : () -> !C
%e = "test.op"() : () -> !dataflow.epoch
%m = schedule.spatial on grid [g0: M = 2] ins(%c : !C) with(%e : !dataflow.epoch) outs(!C) {
^bb0(%t: !t, %f: !dataflow.flags<2, []>):
  schedule.yield %t : !t
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x6xf16, #compound.dims<M, N @OB>>
collective.mesh @edge {x = 2} at {x = "GB"}
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op on a mesh has no blocks and programs: these are of a launch grid
  %r = schedule.spatial on @edge [x: N = 2] blocks <M: 8 -> 8> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x6xf16, #compound.dims<M, N @OB>>
collective.mesh @edge {x = 2} at {x = "GB"}
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op on a mesh has no order of programs: these are of a launch grid
  %r = schedule.spatial on @edge [x: N = 2] reversed ["N"] ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<8x12xf16, #compound.dims<M, N @GB>>
!t = tensor<8x6xf16, #compound.dims<M, N @OB>>
collective.mesh @edge {x = 2} at {x = "GB"}
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op reverses K, and its loops are over N
  %r = schedule.spatial on grid [g0: N = 2] reversed ["K"] ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op has 1 loops, and programs for 2
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 12 -> 16> programs <2 of 4 on 0, 1 of 1 on 1> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op has 3 programs of 4 elements for 2 tiles of M = 3 in blocks of 4
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 12 -> 16> programs <3 of 4 on 0> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op has 2 programs of 5 elements for 2 tiles of M = 3 in blocks of 4
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 12 -> 16> programs <2 of 5 on 0> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op has 1 programs of 4 elements for 2 tiles of M = 3 in blocks of 4
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 12 -> 16> programs <1 of 4 on 0> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.spatial' op has a swizzle, which needs two loops of several tiles
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 12 -> 16> programs <2 of 3 on 0, swizzle 2> ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    schedule.yield %t : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @GB>>
!u = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  %r = schedule.spatial on grid [g0: M = 2] ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    // CHECK: 'schedule.copy' op is masked along K, which tensor<3x12xf16, #compound.dims<M, N @GB>> lacks
    %u = schedule.copy %t mask ["M", "K"] : !t -> !u
    %v = schedule.copy %u : !u -> !t
    schedule.yield %v : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!t = tensor<3x12xf16, #compound.dims<M, N @GB>>
!u = tensor<3x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  %r = schedule.spatial on grid [g0: M = 2] ins(%c : !C) outs(!C) {
  ^bb0(%t: !t):
    // CHECK: 'schedule.copy' op is resident, and the tiles of the launch grid have different slices of tensor<3x12xf16, #compound.dims<M, N @GB>> along M
    %u = schedule.copy %t resident : !t -> !u
    %v = schedule.copy %u : !u -> !t
    schedule.yield %v : !t
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @GB>>
!u = tensor<6x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  %r = schedule.temporal [M = 1] ins(%c : !C) outs(!C) {
  ^bb0(%t: !C):
    // CHECK: 'schedule.copy' op is resident, so it copies an operand of the node on the launch grid that it is in
    %u = schedule.copy %t resident : !C -> !u
    %v = schedule.copy %u : !u -> !C
    schedule.yield %v : !C
  }
  func.return %r : !C
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op until 2: it has to be the index of one of 2 operands, in a node with one loop
  %m = schedule.temporal [N = 2] until 2 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x6xf16, #compound.dims<M, N @OB>>, %last: tensor<6xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<6x6xf16, #compound.dims<M, N @OB>> -> tensor<6xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<6xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op until 1: it has to be the index of one of 2 operands, in a node with one loop
  %m = schedule.temporal [M = 2, N = 2] until 1 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<3x6xf16, #compound.dims<M, N @OB>>, %last: tensor<3xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<3xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C) -> !R {
  // CHECK: 'schedule.temporal' op coalesce: the node loops over N; one loop can replace two or more, each over a dimension of its own
  %m = schedule.temporal [N = 2] coalesce ins(%c : !C) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x6xf16, #compound.dims<M, N @OB>>):
    %max = compound.reduce max %t : tensor<6x6xf16, #compound.dims<M, N @OB>> -> !R
    schedule.yield %max : !R
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
func.func @f(%c: !C) -> !C {
  // CHECK: 'schedule.temporal' op coalesce: the node combines results by none; one loop can replace loops that combine all results by add or max
  %m = schedule.temporal [M = 2, N = 2] coalesce ins(%c : !C) outs(!C) {
  ^bb0(%t: tensor<3x6xf16, #compound.dims<M, N @OB>>):
    %e = compound.map exp %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<3x6xf16, #compound.dims<M, N @OB>>
    schedule.yield %e : tensor<3x6xf16, #compound.dims<M, N @OB>>
  }
  func.return %m : !C
}

// -----

!C = tensor<6x4x12xf16, #compound.dims<M, K, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C) -> !R {
  // CHECK: 'schedule.temporal' op coalesce: the node has specialize, which is about one of its loops; leave one of them out
  %m = schedule.temporal [N = 2, K = 2] specialize coalesce ins(%c : !C) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x2x6xf16, #compound.dims<M, K, N @OB>>):
    %max = compound.reduce max %t : tensor<6x2x6xf16, #compound.dims<M, K, N @OB>> -> !R
    schedule.yield %max : !R
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C) -> !R {
  // CHECK: 'schedule.temporal' op unroll: the node combines results; only loops that concatenate tiles can be unrolled
  %m = schedule.temporal [N = 2] unroll ins(%c : !C) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x6xf16, #compound.dims<M, N @OB>>):
    %max = compound.reduce max %t : tensor<6x6xf16, #compound.dims<M, N @OB>> -> !R
    schedule.yield %max : !R
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op unmask: the node has 2 loops; only one loop can be written as two loops
  %m = schedule.temporal [M = 2, N = 2] unmask ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<3x6xf16, #compound.dims<M, N @OB>>, %last: tensor<3xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<3x6xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<3xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op until 1: the operand has M, over which the node loops; name one that every iteration reads whole
  %m = schedule.temporal [M = 2] until 1 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<3x12xf16, #compound.dims<M, N @OB>>, %last: tensor<3xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<3x12xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<3xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op since 1: the operand has M, over which the node loops; name one that every iteration reads whole
  %m = schedule.temporal [M = 2] since 1 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<3x12xf16, #compound.dims<M, N @OB>>, %first: tensor<3xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<3x12xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<3xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op from: the node has no until, whose positions the loop begins with
  %m = schedule.temporal [N = 2] from 1 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x6xf16, #compound.dims<M, N @OB>>, %first: tensor<6xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<6x6xf16, #compound.dims<M, N @OB>> -> tensor<6xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<6xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}

// -----

!C = tensor<6x12xf16, #compound.dims<M, N @OB>>
!R = tensor<6xf16, #compound.dims<M @OB>>
func.func @f(%c: !C, %r: !R) -> !R {
  // CHECK: 'schedule.temporal' op from 0: the operand has N, over which the node loops; name one that every iteration reads whole
  %m = schedule.temporal [N = 2] until 1 from 0 ins(%c, %r : !C, !R) outs(!R) combine ["max"] {
  ^bb0(%t: tensor<6x6xf16, #compound.dims<M, N @OB>>, %last: tensor<6xf16, #compound.dims<M @OB>>):
    %max = compound.reduce max %t : tensor<6x6xf16, #compound.dims<M, N @OB>> -> tensor<6xf16, #compound.dims<M @OB>>
    schedule.yield %max : tensor<6xf16, #compound.dims<M @OB>>
  }
  func.return %m : !R
}
