// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},add-ctas{ctas=4}' | filecheck %s

// Programs of a group share device memory: their axis begins at a level below it.
// CHECK: collective.mesh @h200x1 {rank = 1, cta = 4} at {rank = "HBM", cta = "SMEM"}
func.func @f(%x: tensor<8xf32, #compound.dims<M>>) -> tensor<8xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
  func.return %y : tensor<8xf32, #compound.dims<M>>
}
