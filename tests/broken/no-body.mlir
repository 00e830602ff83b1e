// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

func.func private @main(tensor<8x4xf16>) -> tensor<8x4xf16>
