// RUN: comet-opt %s --explain --expand -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{search=exact}' 2>&1 | filecheck %s --check-prefix=CHOICE
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{stream=false dim="M:cx,cy" strategy=full factors="c_dram: M=2"}' | filecheck %s

// Exact search starts from the mapping of the quick one, M over the clusters, and proves it.

func.func @gemm(%a: tensor<48x32xf16>, %b: tensor<32x16xf16>) -> tensor<48x16xf16> {
  %c = compound.gemm %a, %b : (tensor<48x32xf16>, tensor<32x16xf16>) -> tensor<48x16xf16>
  func.return %c : tensor<48x16xf16>
}

// CHECK:      comet.mapping attributes {{{.*}}comet.cost = #cost.estimate<paper, cycles, latency = 516,
// CHECK:      comet.tile spatial permutation "MNK" <
// CHECK-NEXT:   a by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1] x [M = 2, N = 1, K = 1],

// CHOICE:      mapping for @gemm
// CHOICE:      * stream=false dim=M:cx,cy strategy=full     516
// CHOICE-NEXT:   stream=false dim=N:cx,kx;M:cy,ky strategy=full     628
// CHOICE:      exact search for @gemm
// CHOICE:      * comet-accelerator     516  575,648  lower bound of the latency: 516, gap 0.00 %, proven
// CHOICE:      decompose{accumulator=input},distribute{dim=M axes=cx,cy},insert-collectives,place-collectives{{.*}},fuse{strategy=full {{.*}}},tile{factors="c_dram: M=2" {{.*}}},annotate-cost{model=paper},lower-to-comet
