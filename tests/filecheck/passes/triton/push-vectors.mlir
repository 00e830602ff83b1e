// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=2 strategy=full ctas=2}' -t triton | filecheck %s

// Vectors are pushed at the offsets that loads have; only tiles with two axes are stored from their corner.

!A = tensor<256x64xf16>
!B = tensor<64x512xf16>
!P = tensor<256x512xf16>
func.func @f(%a: !A, %b: !B) -> !P {
  %p = compound.gemm_softmax %a, %b : (!A, !B) -> !P
  func.return %p : !P
}

// CHECK:     m_message = m_recv_ptr + cta * M
// CHECK:          tl.store(m_message + offs_m, m{{.*}}, cache_modifier=WT)
// CHECK:         there = rebase(m_of_ranks_recv_ptr, rank, dest, heap_bases)
// CHECK-NEXT:    m_of_ranks_message = there + (slot * WORLD + rank) * M
// CHECK:         tl.store(m_of_ranks_message + offs_m,
// CHECK-NOT:     corner
