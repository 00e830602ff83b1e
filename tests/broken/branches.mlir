// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func @main(%a: tensor<8x4xf16>) -> tensor<8x4xf16> {
  "cf.br"() [^bb1] : () -> ()
^bb1:
  func.return %a : tensor<8x4xf16>
}
