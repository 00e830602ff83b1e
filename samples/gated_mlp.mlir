// The feed-forward block of a transformer, with SwiGLU.

func.func @gated_mlp(%x: tensor<128x64xf16>, %gate: tensor<64x256xf16>, %up: tensor<64x256xf16>, %down: tensor<256x32xf16>) -> tensor<128x32xf16> {
  %y = compound.gated_mlp %x, %gate, %up, %down : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<64x256xf16>, tensor<256x32xf16>) -> tensor<128x32xf16>
  func.return %y : tensor<128x32xf16>
}
