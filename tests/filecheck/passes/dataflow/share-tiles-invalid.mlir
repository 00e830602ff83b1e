// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{split="S=4" share=none to=dataflow}' -o %t.mlir
// RUN: not comet-opt %t.mlir -p 'share-tiles{kernels="sum_kernel"}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not comet-opt %t.mlir -p 'share-tiles{kernels="f_m_kernel=0"}' 2>&1 | filecheck %s --check-prefix NUMBER
// RUN: not comet-opt %t.mlir -p 'share-tiles{kernels="f_m_kernel"}' 2>&1 | filecheck %s --check-prefix MANY
// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full split=none share="f_kernel=2"}' | filecheck %s --check-prefix PARTS

!Q = tensor<3x2x3x16xf16>
!K = tensor<3x2x256x16xf16>
!L = tensor<3xi32>

// NAME: share-tiles: there is no kernel sum_kernel; name some of f_m_kernel, or say all or none
// NUMBER: share-tiles: 'f_m_kernel=0' is no number of programs; write one from 1, as in f_m_kernel=2
// MANY: share-tiles: programs of kernel @f_m_kernel cannot share tiles of sequences: 66 programs for each list are no fewer than the 12 parts of its sequences; launch fewer, or split sequences in more parts
// PARTS: share-tiles: programs of kernel @f_kernel cannot share tiles of sequences: no last program merges what others fold; use merge=last

func.func @f(%q: !Q, %k: !K, %v: !K, %lens: !L) -> !Q {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !K, !L) -> !Q
  func.return %o : !Q
}
