// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed' -t triton | filecheck %s

// Weights of a byte each are converted where their product is, in its loop.

!X = tensor<64x256xbf16, #compound.dims<M, K>>
!W = tensor<128x256xbf16, #compound.dims<N, K>>
!C = tensor<64x128xf32, #compound.dims<M, N>>
func.func @f(%x: !X, %w: tensor<128x256xi8, #compound.dims<N, K>>, %s: tensor<128xf32, #compound.dims<N>>) -> !C {
  %b = compound.cast %w : tensor<128x256xi8, #compound.dims<N, K>> -> !W
  %c = compound.contract %x, %b : !X, !W -> !C
  %y = compound.map mult %c, %s : !C, tensor<128xf32, #compound.dims<N>> -> !C
  func.return %y : !C
}

// CHECK:      for k in range
// CHECK:      w_tile = tl.load(w_ptr
// CHECK:      b = w_tile.to(tl.float32).to(tl.bfloat16)
// CHECK:      c = tl.dot(dot_operand(x_tile), dot_operand(tl.trans(b)), c)
// CHECK:      y = c * s_tile
// CHECK:      expect_tensor("w", w, (128, 256), "int8")
