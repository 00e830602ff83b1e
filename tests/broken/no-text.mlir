// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

