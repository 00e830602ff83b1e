// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{to=dataflow factors="y: M=4 N=2 warps=8 stages=3 group=1; p_k: K=4"},split-epilogues' -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: comet-opt %t.mlir | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{factors="y: M=4 N=2 warps=8 stages=3 group=1; p_k: K=4"}' -t triton | filecheck %s --check-prefix TRITON
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{factors="y: M=4 N=512 warps=8 stages=3 group=1 subtiles=2; p_k: K=4"}' 2>&1 | filecheck %s --check-prefix NARROW
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{to=dataflow factors="y: M=4 N=2 warps=8 stages=3 group=1 subtiles=1; p_k: K=4"},split-epilogues' | filecheck %s --check-prefix WHOLE

// Beside an accumulator of 128 x 256, registers have room for a half of the residuals.

!a = tensor<512x256xbf16, #compound.dims<M, K>>
!b = tensor<256x512xbf16, #compound.dims<K, N>>
!c = tensor<512x512xbf16, #compound.dims<M, N>>
!f = tensor<512x512xf32, #compound.dims<M, N>>

func.func @f(%a: !a, %b: !b, %x: !c, %z: !c) -> !c {
  %p = compound.contract %a, %b : !a, !b -> !f
  %x1 = compound.cast %x : !c -> !f
  %z1 = compound.cast %z : !c -> !f
  %q = compound.map mult %p, %x1 : !f, !f -> !f
  %s = compound.map add %q, %z1 : !f, !f -> !f
  %y = compound.cast %s : !f -> !c
  func.return %y : !c
}

// CHECK-LABEL: schedule.spatial @y on grid [g0: M = 4, g1: N = 2]
// CHECK:         #schedule.launch<warps = 8, stages = 3, group = 1, subtiles = 2>
// CHECK:         %p = schedule.temporal @p_k [K = 4]
// CHECK:         %y{{.*}} = schedule.temporal @y_epilogue [N = 2] unroll ins(%p, %x{{.*}}, %z{{.*}} : tensor<128x256xf32, #compound.dims<M, N @REG>>, tensor<128x256xbf16, #compound.dims<M, N @HBM>>, tensor<128x256xbf16, #compound.dims<M, N @HBM>>) outs(tensor<128x256xbf16, #compound.dims<M, N @HBM>>)
// CHECK-NEXT:    ^bb0(%p{{.*}}: tensor<128x128xf32, {{.*}}>, %x{{.*}}: tensor<128x128xbf16, #compound.dims<M, N @REG>>,
// CHECK:           schedule.yield %y{{.*}} : tensor<128x128xbf16, #compound.dims<M, N @REG>>
// CHECK:         schedule.yield %y{{.*}} : tensor<128x256xbf16, #compound.dims<M, N @HBM>>

// TRITON:      p_half, p_half_1 = tl.split(tl.permute(tl.reshape(p, (128, 2, 128)), (0, 2, 1)))
// TRITON:      q = p_half * x
// TRITON:      tl.store(
// TRITON:      offs_n_2 = start_n + 128 + tl.arange(0, BLOCK_N_1)
// TRITON:      q_1 = p_half_1 * x
// TRITON:      tl.store(

// WHOLE-LABEL: schedule.spatial @y on grid
// WHOLE-NOT:     subtiles
// WHOLE-NOT:     _epilogue

// NARROW: error: tile: @y: 2 subtiles do not divide its tiles of 1 of N, which need a power of two; leave subtiles out
