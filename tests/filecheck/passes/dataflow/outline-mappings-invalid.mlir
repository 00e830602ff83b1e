// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},outline-mappings' | filecheck %s

!X = tensor<6x4xf32, #compound.dims<M, N>>
!T = tensor<6x4xf32, #compound.dims<N, M>>
// CHECK: outline-mappings: @f returns %t, which no operation computes; return what is computed, and no more
func.func @f(%x: !X) -> !T {
  %t = compound.rename %x : !X -> !T
  func.return %t : !T
}

// -----

!X = tensor<6x4xf32, #compound.dims<M, N>>
!Y = tensor<6x2xf32, #compound.dims<M, N>>
// CHECK: outline-mappings: @f is sharded, and its mappings are sharded one by one; leave the shardings out, and distribute in each module
func.func @f(%x: !X {collective.shard = {M = ["cx"]}}) -> !Y {
  %e = compound.map exp %x : !X -> !X
  %y = compound.slice %e "N" [0, 2] : !X -> !Y
  %z = compound.map exp %y : !Y -> !Y
  func.return %z : !Y
}
