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

// -----

// A cast that has another reader, beside those of what it reads.

!X = tensor<6x4xf32, #compound.dims<M, N>>
!H = tensor<6x4xf16, #compound.dims<M, N>>
!T = tensor<6x4xf16, #compound.dims<L, N>>
!S = tensor<6x6xf16, #compound.dims<M, L>>
func.func @f(%x: !X) -> (!S, !X) {
  %e = compound.map exp %x : !X -> !X
  %h = compound.cast %e : !X -> !H
// CHECK: outline-mappings: 'compound.rename' shows %h, which is in no memory, as each op that reads a 'compound.cast' does it itself; show what it reads, or make it an argument of @f
  %t = compound.rename %h : !H -> !T
  %s = compound.contract %h, %t : !H, !T -> !S
  func.return %s, %e : !S, !X
}

// -----

!X = tensor<6x4xf32, #compound.dims<M, N>>
!Z = tensor<2x4xf32, #compound.dims<M, N>>
!Y = tensor<8x4xf32, #compound.dims<M, N>>
func.func @f(%x: !X) -> !Y {
  %e = compound.map exp %x : !X -> !X
  %z = compound.fill 1.0 : !Z
// CHECK: outline-mappings: 'compound.concat' shows %z, which is in no memory, as each op that reads a 'compound.fill' does it itself; show what it reads, or make it an argument of @f
  %c = compound.concat "M" %e, %z : !X, !Z -> !Y
  %y = compound.map exp %c : !Y -> !Y
  func.return %y : !Y
}
