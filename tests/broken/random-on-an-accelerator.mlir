// RUN: attach-hardware{path="%hardware/edge.yaml"},comet-accelerator

!M = tensor<64xi32, #compound.dims<M>>
!N = tensor<32xi32, #compound.dims<N>>
!X = tensor<64x32xf32, #compound.dims<M, N>>
func.func @main(%x: !X, %seeds: !M, %positions: !N) -> !X {
  %u = compound.map random %seeds, %positions : !M, !N -> !X
  %y = compound.map mult %x, %u : !X, !X -> !X
  func.return %y : !X
}
