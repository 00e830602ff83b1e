// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{strategy=full factors="p_dram: M=2; c_ob: K=2"}' | filecheck %s

// The files' ops in place of the function, the reference beside them.

func.func @f(%a: tensor<8x4xf16>, %b: tensor<4x32xf16>) -> tensor<8x32xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x32xf16>) -> tensor<8x32xf16>
  func.return %p : tensor<8x32xf16>
}

// CHECK:      comet.problem ins ["a", "b"] outs ["p"] instance <M = 8, N = 32, K = 4> {
// CHECK-NEXT:   comet.declare "GEMM" ins ["a", "b"] out "c"
// CHECK-NEXT:   comet.declare "ROWMAX" ins ["c"] out "m"
// CHECK-NEXT:   comet.declare "SUB" ins ["c", "m"] out "s"
// CHECK-NEXT:   comet.declare "EXP" ins ["s"] out "e"
// CHECK-NEXT:   comet.declare "ROWSUM" ins ["e"] out "l"
// CHECK-NEXT:   comet.declare "DIV" ins ["e", "l"] out "p"
// CHECK:      comet.mapping attributes {
// CHECK-NEXT:   comet.tile temporal permutation "NKM" <
// CHECK-NEXT:     a by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1],
// CHECK-NEXT:     b by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 1, K = 1],
// CHECK-NEXT:     p by DIV, DRAM -> GB, 16 bits, wb_output, [M = 2, N = 1, K = 1]
// CHECK:      a by GEMM, IB -> GEMMEngine, 16 bits, [M = 1, N = 1, K = 2],
// CHECK:      comet.collective reduction "c1" at "GB" in "m" out "m"
// CHECK:      comet.collective broadcast "c2" at "GB" in "m" out "m"
// CHECK:      comet.collective reduction "c3" at "GB" in "l" out "l"
// CHECK:      comet.collective broadcast "c4" at "GB" in "l" out "l"
// CHECK:      func.func private @f__reference({{.*}}attributes {comet.reference} {
