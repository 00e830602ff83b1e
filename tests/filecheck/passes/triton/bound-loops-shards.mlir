// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=2 strategy=full split=none to=dataflow}' -o %t.mlir
// RUN: comet-opt %t.mlir -p materialize-copies,hoist-copies,bound-loops | filecheck %s
// RUN: comet-opt %t.mlir -p 'triton-distributed{ranks=2}' -t triton | filecheck %s --check-prefix TRITON

// Ranks have shards of the keys: the loop over a shard begins with the first of its keys, and a shard that no query sees has no iterations.

!Q = tensor<2x1x16x16xf16>
!K = tensor<2x1x1024x16xf16>
func.func @decode(%q: !Q, %k: !K {collective.shard = {S = ["rank"]}}, %v: !K {collective.shard = {S = ["rank"]}}, %lens: tensor<2xi32>) -> !Q {
  %o = compound.flash_decode %q, %k, %v, %lens {collective.shard = {S = ["rank"]}} : (!Q, !K, !K, tensor<2xi32>) -> !Q
  func.return %o : !Q
}

// CHECK-LABEL: func.func @decode
// CHECK:         %s_index = compound.index of 1024 over ["rank"]
// CHECK:         schedule.temporal @m_s [S = {{[0-9]+}}] partial until 1 from 2 ins(%k_{{[0-9]+}}, %last, %s_index
// CHECK:           compound.map ge %last_{{[0-9]+}}, %s_index
// CHECK:         schedule.temporal @m_rank_part
// CHECK-NOT:       partial

// TRITON:     first_s = rank * S
// TRITON:     stop = tl.where(last >= 0, tl.minimum(last - first_s + 1, S), S)
// TRITON:     for s in range(0, stop, BLOCK_S):
