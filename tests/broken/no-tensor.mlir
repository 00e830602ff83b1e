// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func @main(%a: f16) -> f16 {
  func.return %a : f16
}
