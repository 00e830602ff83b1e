// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=9}' | filecheck %s
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{dim=""}' 2>&1 | filecheck %s --check-prefix=EMPTY

func.func @f(%a: tensor<8x4xf16>, %b: tensor<4x16xf16>) -> tensor<8x16xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  func.return %p : tensor<8x16xf16>
}

// CHECK: select-ranks: ranks=9 is too many: @h200x8 has 8; attach hardware with more, or use fewer
// EMPTY: pass 'triton-distributed': the option 'dim' names the dimension that ranks shard, as in N; it is empty; name one, or use ranks=1 without it to shard none
