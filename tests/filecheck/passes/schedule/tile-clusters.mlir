// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml" triton="3.8"},triton-distributed{to=dataflow strategy=full factors="p: M=4 warps=8 stages=3 group=1 cluster=2; c_k: K=4"}' | filecheck %s --check-prefix PLAN
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml" triton="3.8"},triton-distributed{strategy=full factors="p: M=4 warps=8 stages=3 group=1 cluster=2; c_k: K=4"}' -t triton | filecheck %s
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full factors="p: M=4 warps=8 stages=3 group=1 cluster=2; c_k: K=4"}' 2>&1 | filecheck %s --check-prefix OLDER

// Two thread blocks have 256 columns of 512 each, and the same 128 rows.

func.func @gemm_softmax(%a: tensor<512x256xbf16>, %b: tensor<256x512xbf16>) -> tensor<512x512xbf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<512x512xbf16>
  func.return %p : tensor<512x512xbf16>
}

// PLAN: triton = "3.8"
// PLAN: comet.plan = "p: M=4 warps=8 stages=3 group=1 cluster=2; c_k: K=4"
// PLAN: schedule.launch = #schedule.launch<warps = 8, stages = 3, group = 1, cluster = 2>

// CHECK:      Programs are clusters of thread blocks (num_ctas), for Triton 3.8 or
// CHECK-NEXT: newer. Each block has a part of the columns; reductions of rows read the others'.
// CHECK:      from comet.runtime.language import dot_operand, expect_triton
// CHECK-EMPTY:
// CHECK-NEXT: expect_triton("3.8")
// CHECK:      c = tl.dot(dot_operand(a_tile), dot_operand(b_tile), c)
// CHECK:      top = tl.max(c, axis=1)
// CHECK:      added = tl.sum(e, axis=1)
// CHECK:      gemm_softmax_kernel[(4,)](
// CHECK:      BLOCK_M=128,
// CHECK-NEXT: BLOCK_N=512,
// CHECK-NEXT: num_warps=8,
// CHECK-NEXT: num_stages=3,
// CHECK-NEXT: num_ctas=2,

// OLDER: tile: @p cannot have cluster=2: a program has at most 1 thread blocks here; clusters need Triton 3.8 or newer, which the option triton of attach-hardware says, and most_cluster_blocks in the hardware file
