// RUN: not comet-opt %s -p choose-shardings 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},choose-shardings' 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},choose-shardings{trial=9}' 2>&1 | filecheck %s --check-prefix=TRIAL
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=2 ctas=4 dim=auto}' 2>&1 | filecheck %s --check-prefix=GROUPS

func.func @f(%x: tensor<4x8xf32, #compound.dims<M, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %e = compound.map exp %x : tensor<4x8xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
  func.return %e : tensor<4x8xf32, #compound.dims<M, N>>
}

// NONE: choose-shardings: the module has no hardware; run attach-hardware
// KIND: choose-shardings: hardware @edge is no GPU; run comet-accelerator
// TRIAL: the option 'trial' is 9, and the last of the shardings near the fastest is 0; use 0, or one up to that
// GROUPS: the option 'dim' is auto, and the programs of a group share one dimension; name it
