// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{ranks=1}' -t triton | filecheck %s --check-prefix=FULL
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=partial between=spill factors="p: M=2; m_n: N=4; c_wide_k: K=2; p_n: N=4"}' -t triton | filecheck %s --check-prefix=SWEPT
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=none stream=false}' -t triton | filecheck %s --check-prefix=APART

func.func @f(%a: tensor<32x64xf16>, %b: tensor<64x128xf16>) -> tensor<32x128xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<32x64xf16>, tensor<64x128xf16>) -> tensor<32x128xf16>
  func.return %p : tensor<32x128xf16>
}

// One kernel that holds a row, without a loop over N.
// FULL:     def f_kernel(
// FULL:     tl.dot(
// FULL-NOT: range(0, N, BLOCK_N)
// FULL:     tl.max(
// FULL:     tl.sum(
// FULL-NOT: tl.dot(
// FULL:     tl.store(
// FULL:     f_kernel[(2,)](

// One kernel with two loops over N; the product goes through device memory between them.
// SWEPT:     def f_kernel(
// SWEPT:     range(0, N, BLOCK_N)
// SWEPT:     range(0, K, BLOCK_K)
// SWEPT:     tl.dot(
// SWEPT:     tl.store(
// SWEPT:     range(0, N, BLOCK_N)
// SWEPT-NOT: tl.dot(
// SWEPT:     f_kernel[(2,)](

// A kernel for the product, and one for the rest.
// APART: def f_c_kernel(
// APART: tl.dot(
// APART: def f_p_kernel(
// APART: tl.exp2(
