// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},add-ctas{ctas=0}' | filecheck %s --check-prefix=NONE
// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},add-ctas{ctas=2},add-ctas{ctas=2}' | filecheck %s --check-prefix=TWICE
// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},distribute{dim=M axes=rank},insert-collectives,add-ctas{ctas=2}' | filecheck %s --check-prefix=LATE
// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},add-ctas{ctas=2}' | filecheck %s --check-prefix=OTHER

// NONE: add-ctas: ctas=0 is no number of programs; use 1 or more
// TWICE: add-ctas: @h200x1 has 2 programs in a group already; run add-ctas once
// LATE: add-ctas: collective.spmd is written for @h200x1 without groups of programs; run add-ctas before insert-collectives
// OTHER: add-ctas
func.func @f(%x: tensor<8xf32, #compound.dims<M>>) -> tensor<8xf32, #compound.dims<M>> {
  %y = compound.map exp %x : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
  func.return %y : tensor<8xf32, #compound.dims<M>>
}
