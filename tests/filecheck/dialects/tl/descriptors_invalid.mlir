// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

tl.kernel @k(%x: !tl.ptr<f16>, %M: !tl.constexpr<32>) {
  %d = tl.make_descriptor %x shape(%M) strides(%M) block(%M) : !tl.ptr<f16> [!tl.constexpr<32>] [!tl.constexpr<32>] [!tl.constexpr<32>] -> !tl.descriptor<tensor<32xf16>>
  // CHECK: 'tl.make_descriptor' op of 1 axes has 1 extents and 1 strides, expected 1 and 0
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %M: !tl.constexpr<32>) {
  %d = tl.make_descriptor %x shape(%M) strides() block(%M) : !tl.ptr<f16> [!tl.constexpr<32>] [] [!tl.constexpr<32>] -> !tl.descriptor<tensor<16xf16>>
  // CHECK: 'tl.make_descriptor' op result is !tl.descriptor<tensor<16xf16>>, expected !tl.descriptor<tensor<32xf16>>
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %d: !tl.descriptor<tensor<4xf16>>) {
  // CHECK: !tl.descriptor copies at least 16 bytes along its last axis, not 4 elements of f16
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %d: !tl.descriptor<tensor<1x1x1x1x1x16xf16>>) {
  // CHECK: !tl.descriptor has 1 to 5 axes, not 6
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %d: !tl.descriptor<tensor<16x!tl.ptr<f16>>>) {
  // CHECK: !tl.descriptor copies numbers, not !tl.ptr<f16>
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %M: !tl.constexpr<32>) {
  %g = tl.program_id 0
  %d = tl.make_descriptor %x shape(%M) strides() block(%M) : !tl.ptr<f16> [!tl.constexpr<32>] [] [!tl.constexpr<32>] -> !tl.descriptor<tensor<32xf16>>
  %t = tl.descriptor_load %d[%g, %g] : (!tl.descriptor<tensor<32xf16>>, i32, i32) -> tensor<32xf16>
  // CHECK: 'tl.descriptor_load' op has 2 indices for 1 axes
}

// -----

tl.kernel @k(%x: !tl.ptr<f16>, %M: !tl.constexpr<32>) {
  %d = tl.make_descriptor %x shape(%M) strides() block(%M) : !tl.ptr<f16> [!tl.constexpr<32>] [] [!tl.constexpr<32>] -> !tl.descriptor<tensor<32xf16>>
  %t = tl.descriptor_load %d[%x] : (!tl.descriptor<tensor<32xf16>>, !tl.ptr<f16>) -> tensor<32xf16>
  // CHECK: 'tl.descriptor_load' op index is !tl.ptr<f16>
}

// -----

tl.kernel @k(%M: !tl.constexpr<32>, %N: !tl.constexpr<16>) {
  %r = tl.arange %M : !tl.constexpr<32> -> tensor<32xi32>
  %t = tl.reshape %r to(%N) : (tensor<32xi32>, !tl.constexpr<16>) -> tensor<16xi32>
  // CHECK: 'tl.reshape' op has 32 elements and makes 16 of them
}
