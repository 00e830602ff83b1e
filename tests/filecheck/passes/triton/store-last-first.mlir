// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{ranks=1}' -t triton | filecheck %s

// Of a chain of values, the last one is stored first: Triton 3.6 fails to compile the other order.

!x = tensor<256x256xbf16, #compound.dims<M, N>>
!w = tensor<256x256xf32, #compound.dims<M, N>>
func.func @chain(%x: !x) -> (!w, !w, !x) {
  %wide = compound.cast %x : !x -> !w
  %grown = compound.map exp %wide : !w -> !w
  %whole = compound.map add %grown, %wide : !w, !w -> !w
  %narrow = compound.cast %whole : !w -> !x
  func.return %grown, %whole, %narrow : !w, !w, !x
}

// CHECK:      tl.store(narrow_ptr
// CHECK-NEXT: tl.store(whole_ptr
// CHECK-NEXT: tl.store(grown_ptr
// CHECK:      return grown, whole, narrow
