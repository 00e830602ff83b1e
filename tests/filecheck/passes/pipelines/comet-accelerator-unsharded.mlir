// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{dim=""}' | filecheck %s --check-prefix=GIVEN

// One core computes this product faster than any clusters that share it.

func.func @gemm(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>) -> tensor<16x32xf16> {
  %c = compound.gemm %a, %b : (tensor<16x16xf16>, tensor<16x32xf16>) -> tensor<16x32xf16>
  func.return %c : tensor<16x32xf16>
}

// CHECK:      comet.mapping attributes {{{.*}}comet.dim = "", {{.*}}comet.cost = #cost.estimate<paper, cycles, latency = 277,
// CHECK:      comet.tile spatial permutation "MNK" <
// CHECK-NEXT:   a by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 1, K = 1] x [M = 1, N = 1, K = 1],

// GIVEN:      latency = 277,
