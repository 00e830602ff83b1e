// RUN: comet-opt %s -p outline-kernels,coalesce-loops | filecheck %s
// RUN: comet-opt %s -p outline-kernels,coalesce-loops,materialize-copies,hoist-copies,pad-blocks,map-grid,mask-copies,lower-to-triton | filecheck %s --check-prefix TRITON

// A product that sums over heads H and their elements G: one loop over both.

!p = tensor<4x64x32xf16, #compound.dims<H, M, G @HBM>>
!w = tensor<4x32x16xf16, #compound.dims<H, G, D @HBM>>
!y = tensor<64x16xf32, #compound.dims<M, D @HBM>>
!p1 = tensor<1x64x32xf16, #compound.dims<H, M, G @HBM>>
!w1 = tensor<1x32x16xf16, #compound.dims<H, G, D @HBM>>
!p2 = tensor<1x64x16xf16, #compound.dims<H, M, G @SMEM>>
!w2 = tensor<1x16x16xf16, #compound.dims<H, G, D @SMEM>>
!a = tensor<64x16xf32, #compound.dims<M, D @REG>>

func.func @projection(%p: !p, %w: !w) -> !y {
  %y = schedule.spatial @y on grid [g0: M = 1] ins(%p, %w : !p, !w) outs(!y) {
  ^bb0(%pt: !p, %wt: !w):
    %s = schedule.temporal @s_h [H = 4] ins(%pt, %wt : !p, !w) outs(!a) combine ["add"] {
    ^bb1(%ph: !p1, %wh: !w1):
      %t = schedule.temporal @s_g [G = 2] ins(%ph, %wh : !p1, !w1) outs(!a) combine ["add"] {
      ^bb2(%pg: !p2, %wg: !w2):
        %c = compound.contract %pg, %wg : !p2, !w2 -> !a
        schedule.yield %c : !a
      }
      schedule.yield %t : !a
    }
    schedule.yield %s : !a
  }
  func.return %y : !y
}

// CHECK-LABEL: dataflow.kernel @projection_kernel
// CHECK:         %s = schedule.temporal @s_g [H = 4, G = 2] coalesce ins(%p{{.*}}, %w{{.*}} combine ["add"]
// CHECK-NEXT:    ^bb0(%p{{[^:]*}}: tensor<1x64x16xf16, #compound.dims<H, M, G @SMEM>>
// CHECK-NEXT:      compound.contract
// CHECK-NOT:     schedule.temporal

// TRITON-LABEL: tl.kernel @projection_kernel
// TRITON:         %[[ALL:.*]] = tl.constant 8 : i32
// TRITON:         %end = tl.binary add %[[ALL]], %zero
// TRITON:         tl.for %i : i32 = %{{.*}} to %end
// TRITON-NEXT:      %[[TWO:.*]] = tl.constant 2 : i32
// TRITON-NEXT:      %[[REST:.*]] = tl.binary mod %i, %[[TWO]]
// TRITON-NEXT:      %h = tl.binary floordiv %i, %[[TWO]]
// TRITON-NEXT:      %g = tl.binary mul %[[REST]], %BLOCK_G
// TRITON:           tl.dot
// TRITON:         tl.store

// Nothing changes where the outer loop does more than run the inner one,

func.func @two_sums(%p: !p, %w: !w) -> (!y, !y) {
  %y, %z = schedule.spatial @y on grid [g0: M = 1] ins(%p, %w : !p, !w) outs(!y, !y) {
  ^bb0(%pt: !p, %wt: !w):
    %s, %u = schedule.temporal @s_h [H = 4] ins(%pt, %wt : !p, !w) outs(!a, !a) combine ["add", "add"] {
    ^bb1(%ph: !p1, %wh: !w1):
      %t = schedule.temporal @s_g [G = 2] ins(%ph, %wh : !p1, !w1) outs(!a) combine ["add"] {
      ^bb2(%pg: !p2, %wg: !w2):
        %c = compound.contract %pg, %wg : !p2, !w2 -> !a
        schedule.yield %c : !a
      }
      %v = schedule.temporal @u_g [G = 2] ins(%ph, %wh : !p1, !w1) outs(!a) combine ["add"] {
      ^bb2(%pg: !p2, %wg: !w2):
        %c = compound.contract %pg, %wg : !p2, !w2 -> !a
        schedule.yield %c : !a
      }
      schedule.yield %t, %v : !a, !a
    }
    schedule.yield %s, %u : !a, !a
  }
  func.return %y, %z : !y, !y
}

// CHECK-LABEL: dataflow.kernel @two_sums_kernel
// CHECK:         schedule.temporal @s_h [H = 4] ins
// CHECK:           schedule.temporal @s_g [G = 2] ins
// CHECK:           schedule.temporal @u_g [G = 2] ins

// where a loop of the nest does not change a tile, which is loaded before that loop,

!v = tensor<32xf16, #compound.dims<G @HBM>>
!v1 = tensor<16xf16, #compound.dims<G @HBM>>
!v2 = tensor<16xf16, #compound.dims<G @REG>>
!pg = tensor<4x64x16xf16, #compound.dims<H, M, G @HBM>>
!wg = tensor<4x16x16xf16, #compound.dims<H, G, D @HBM>>
!pr = tensor<1x64x16xf16, #compound.dims<H, M, G @REG>>

func.func @scaled(%p: !p, %w: !w, %v: !v) -> !y {
  %y = schedule.spatial @y on grid [g0: M = 1] ins(%p, %w, %v : !p, !w, !v) outs(!y) {
  ^bb0(%pt: !p, %wt: !w, %vt: !v):
    %s = schedule.temporal @s_g [G = 2] ins(%pt, %wt, %vt : !p, !w, !v) outs(!a) combine ["add"] {
    ^bb1(%pg: !pg, %wg: !wg, %vg: !v1):
      %t = schedule.temporal @s_h [H = 4] ins(%pg, %wg, %vg : !pg, !wg, !v1) outs(!a) combine ["add"] {
      ^bb2(%ph: !pr, %wh: !w2, %vh: !v2):
        %m = compound.map mult %ph, %vh : !pr, !v2 -> !pr
        %c = compound.contract %m, %wh : !pr, !w2 -> !a
        schedule.yield %c : !a
      }
      schedule.yield %t : !a
    }
    schedule.yield %s : !a
  }
  func.return %y : !y
}

// CHECK-LABEL: dataflow.kernel @scaled_kernel
// CHECK:         schedule.temporal @s_g [G = 2] ins
// CHECK:           schedule.temporal @s_h [H = 4] ins

// and where only one of the loops has several iterations.

func.func @one_iteration(%p: !p, %w: !w) -> !y {
  %y = schedule.spatial @y on grid [g0: M = 1] ins(%p, %w : !p, !w) outs(!y) {
  ^bb0(%pt: !p, %wt: !w):
    %s = schedule.temporal @s_h [H = 4] ins(%pt, %wt : !p, !w) outs(!a) combine ["add"] {
    ^bb1(%ph: !p1, %wh: !w1):
      %t = schedule.temporal @s_g [G = 1] ins(%ph, %wh : !p1, !w1) outs(!a) combine ["add"] {
      ^bb2(%pg: tensor<1x64x32xf16, #compound.dims<H, M, G @SMEM>>, %wg: tensor<1x32x16xf16, #compound.dims<H, G, D @SMEM>>):
        %c = compound.contract %pg, %wg : tensor<1x64x32xf16, #compound.dims<H, M, G @SMEM>>, tensor<1x32x16xf16, #compound.dims<H, G, D @SMEM>> -> !a
        schedule.yield %c : !a
      }
      schedule.yield %t : !a
    }
    schedule.yield %s : !a
  }
  func.return %y : !y
}

// CHECK-LABEL: dataflow.kernel @one_iteration_kernel
// CHECK:         schedule.temporal @s_h [H = 4] ins
// CHECK:           schedule.temporal @s_g [G = 1] ins
