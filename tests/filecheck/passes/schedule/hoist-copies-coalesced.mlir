// RUN: comet-opt %s -p outline-kernels,materialize-copies,hoist-copies | filecheck %s

// The loop over H does not change %v, which is loaded between the loops: they are not one.

!p = tensor<4x64x32xf16, #compound.dims<H, M, G @HBM>>
!w = tensor<4x32x16xf16, #compound.dims<H, G, D @HBM>>
!v = tensor<32xf16, #compound.dims<G @HBM>>
!y = tensor<64x16xf32, #compound.dims<M, D @HBM>>
!p2 = tensor<1x64x16xf16, #compound.dims<H, M, G @REG>>
!w2 = tensor<1x16x16xf16, #compound.dims<H, G, D @SMEM>>
!v2 = tensor<16xf16, #compound.dims<G @REG>>
!a = tensor<64x16xf32, #compound.dims<M, D @REG>>

func.func @scaled(%p: !p, %w: !w, %v: !v) -> !y {
  %y = schedule.spatial @y on grid [g0: M = 1] ins(%p, %w, %v : !p, !w, !v) outs(!y) {
  ^bb0(%pt: !p, %wt: !w, %vt: !v):
    %s = schedule.temporal @s [G = 2, H = 4] coalesce ins(%pt, %wt, %vt : !p, !w, !v) outs(!a) combine ["add"] {
    ^bb1(%ph: !p2, %wh: !w2, %vh: !v2):
      %m = compound.map mult %ph, %vh : !p2, !v2 -> !p2
      %c = compound.contract %m, %wh : !p2, !w2 -> !a
      schedule.yield %c : !a
    }
    schedule.yield %s : !a
  }
  func.return %y : !y
}

// CHECK:      schedule.temporal @s [G = 2] ins
// CHECK:        schedule.copy %v
// CHECK:        schedule.temporal @s [H = 4] ins
