// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/mi300x8.yaml"},triton-distributed{stores=all}' 2>&1 | filecheck %s --check-prefix AMD
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{stores=other}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{stores="gemm_kernel"}' 2>&1 | filecheck %s --check-prefix ROWS

func.func @gemm(%a: tensor<256x256xf16>, %b: tensor<256x20xf16>) -> tensor<256x20xf16> {
  %c = compound.gemm %a, %b : (tensor<256x256xf16>, tensor<256x20xf16>) -> tensor<256x20xf16>
  func.return %c : tensor<256x20xf16>
}

// AMD: stage-stores: @mi300x8 has no descriptors; use stores=none, or say descriptor_bytes in its hardware file
// NAME: stage-stores: there is no kernel other; name some of gemm_kernel, or say all or none
// ROWS: stage-stores: no descriptor can store what @gemm_kernel computes: it takes blocks of results that no program reads, by all warps of one rank, with rows at multiples of 16 bytes, and whole ones in clusters; leave it out, or use stores=none
