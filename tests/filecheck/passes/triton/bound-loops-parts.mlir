// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},stream,split{dim=S parts=4},fuse{strategy=partial},tile{factors="m: S_part=4 B=2 H=1 G=1; m_s_in: S_in=2"},outline-kernels,materialize-copies,hoist-copies,bound-loops' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=partial split="S=4" factors="m: S_part=4 B=2 H=1 G=1; m_s_in: S_in=2"}' -t triton | filecheck %s --check-prefix TRITON

// Programs split the keys: the loop over a part begins with the first of its keys, and a part that no query sees has no iterations.

!Q = tensor<2x1x16x16xf16>
!K = tensor<2x1x128x16xf16>
func.func @decode(%q: !Q, %k: !K, %v: !K, %lens: tensor<2xi32>) -> !Q {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !K, tensor<2xi32>) -> !Q
  func.return %o : !Q
}

// CHECK-LABEL: func.func @decode
// CHECK:         schedule.temporal @m_s_in [S_in = 2] partial until [[LAST:[0-9]+]] from [[START:[0-9]+]] ins(
// CHECK-SAME:      %start
// CHECK:           %s_index = compound.map add %start_{{[0-9]+}}, %
// CHECK-NEXT:      compound.map ge %last_{{[0-9]+}}, %s_index
// CHECK:         schedule.temporal @m_s_parts
// CHECK-NOT:       partial

// TRITON:      stop = tl.where(last >= 0, tl.minimum(last - start + 1, S_in), S_in)
// TRITON:      for s_in in range(0, stop, BLOCK_S_in):
