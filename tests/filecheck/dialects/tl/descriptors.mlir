// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// CHECK:      tl.kernel @k(
// CHECK-GENERIC: "tl.kernel"
tl.kernel @k(%x: !tl.ptr<f16>, %M: !tl.constexpr<40>, %K: !tl.constexpr<24>, %B: !tl.constexpr<16>, %B_M: !tl.constexpr<8>) {
  %g = tl.program_id 0
  %one = tl.constant 1 : i32
  // CHECK:      %d = tl.make_descriptor %x shape(%M, %K) strides(%K) block(%B_M, %B) : !tl.ptr<f16>[!tl.constexpr<40>, !tl.constexpr<24>] [!tl.constexpr<24>] [!tl.constexpr<8>, !tl.constexpr<16>] -> !tl.descriptor<tensor<8x16xf16>>
  // CHECK-GENERIC: %d = "tl.make_descriptor"(%x, %M, %K, %K, %B_M, %B)
  %d = tl.make_descriptor %x shape(%M, %K) strides(%K) block(%B_M, %B) : !tl.ptr<f16> [!tl.constexpr<40>, !tl.constexpr<24>] [!tl.constexpr<24>] [!tl.constexpr<8>, !tl.constexpr<16>] -> !tl.descriptor<tensor<8x16xf16>>
  // CHECK-NEXT: %t = tl.descriptor_load %d[%g, %g] : (!tl.descriptor<tensor<8x16xf16>>, i32, i32) -> tensor<8x16xf16>
  // CHECK-GENERIC-NEXT: %t = "tl.descriptor_load"(%d, %g, %g) : (!tl.descriptor<tensor<8x16xf16>>, i32, i32) -> tensor<8x16xf16>
  %t = tl.descriptor_load %d[%g, %g] : (!tl.descriptor<tensor<8x16xf16>>, i32, i32) -> tensor<8x16xf16>
  // CHECK-NEXT: %r = tl.reshape %t to(%one, %B_M, %B) : (tensor<8x16xf16>, i32, !tl.constexpr<8>, !tl.constexpr<16>) -> tensor<1x8x16xf16>
  // CHECK-GENERIC-NEXT: %r = "tl.reshape"(%t, %one, %B_M, %B)
  %r = tl.reshape %t to(%one, %B_M, %B) : (tensor<8x16xf16>, i32, !tl.constexpr<8>, !tl.constexpr<16>) -> tensor<1x8x16xf16>
}
