// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose,fuse{strategy=partial},tile{factors="o: N=1 E=1 warps=4 stages=3; o_m: M=4"},outline-kernels,lower-to-triton' -t triton | filecheck %s

// A loop-invariant operand is transposed before the loop, another one in it.

!MG = tensor<256x64xf16, #compound.dims<M, G>>
!NG = tensor<64x64xf16, #compound.dims<N, G>>
!ME = tensor<256x64xf16, #compound.dims<M, E>>
!MN = tensor<256x64xf32, #compound.dims<M, N>>
!MN16 = tensor<256x64xf16, #compound.dims<M, N>>
!NE = tensor<64x64xf32, #compound.dims<N, E>>
func.func @f(%a: !MG, %v: !NG, %b: !ME) -> !NE {
  %s = compound.contract %a, %v : !MG, !NG -> !MN
  %s16 = compound.cast %s : !MN -> !MN16
  %o = compound.contract %s16, %b : !MN16, !ME -> !NE
  func.return %o : !NE
}

// CHECK:       def f_kernel(
// CHECK:         v_tile_t = tl.trans(v_tile)
// CHECK:         for m in range(
// CHECK-NOT:     tl.trans(v
// CHECK:           tl.dot(a_tile, v_tile_t)
// CHECK:           tl.dot(tl.trans(s16), b_tile
