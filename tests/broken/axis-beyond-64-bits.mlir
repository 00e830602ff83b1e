// RUN:
func.func @f(%x: tensor<16xi32>) {
  %y = tl.expand_dims %x [99999999999999999999] : tensor<16xi32> -> tensor<1x16xi32>
  func.return
}
