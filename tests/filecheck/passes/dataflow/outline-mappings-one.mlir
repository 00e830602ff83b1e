// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},outline-mappings' | filecheck %s

// A function that one mapping holds stays, also with a pad of an argument and a slice
// of a result.

!X = tensor<6x5xf32, #compound.dims<M, N>>
!P = tensor<6x8xf32, #compound.dims<M, N>>
func.func @one(%x: !X) -> !X {
  %p = compound.pad %x <0.0 from N = 5> : !X -> !P
  %e = compound.map exp %p : !P -> !P
  %y = compound.slice %e : !P -> !X
  func.return %y : !X
}

// CHECK-LABEL: func.func @one
// CHECK-NEXT:    %p = compound.pad %x
// CHECK-NEXT:    %e = compound.map exp %p
// CHECK-NEXT:    %y = compound.slice %e
// CHECK-NOT:   dataflow.mapping
