// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{search=exact}' | filecheck %s
// RUN: comet-opt %s --explain --expand -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{search=exact}' 2>&1 | filecheck %s --check-prefix=CHOICE

// One core is faster than all: quick search shards N or M, exact search nothing.

func.func @gemm(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>) -> tensor<16x32xf16> {
  %c = compound.gemm %a, %b : (tensor<16x16xf16>, tensor<16x32xf16>) -> tensor<16x32xf16>
  func.return %c : tensor<16x32xf16>
}

// CHECK:      comet.mapping attributes {{{.*}}comet.cost = #cost.estimate<paper, cycles, latency = 277,
// CHECK:      comet.tile spatial permutation "MNK" <
// CHECK-NEXT:   a by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 1, K = 1] x [M = 1, N = 1, K = 1],

// CHOICE:      mapping for @gemm
// CHOICE:      * stream=false dim=N strategy=full     402
// CHOICE:      exact search for @gemm
// CHOICE-NEXT:   candidate                        cycles       pJ  limited by
// CHOICE-NEXT: * stream=false dim= strategy=full     277  259,229  lower bound of the latency: 277, gap 0.00 %, proven
// CHOICE:      decompose{accumulator=input},insert-collectives,place-collectives{{.*}},fuse{strategy=full {{.*}}},tile{factors="" {{.*}}},annotate-cost{model=paper},lower-to-comet
