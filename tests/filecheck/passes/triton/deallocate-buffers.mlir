// RUN: comet-opt %s -p deallocate-buffers | filecheck %s

// Each buffer is there from its first use to its last; what is returned, or viewed, stays.

!t = tensor<8xf32>

tl.kernel @copy(%src: !tl.ptr<f32>, %dst: !tl.ptr<f32>) {
  %x = tl.load %src : !tl.ptr<f32> -> f32
  tl.store %dst, %x : !tl.ptr<f32>, f32
}

func.func @copies(%a: !t) -> (!t, tensor<2x4xf32>) {
  %b = tl.empty : !t
  %c = tl.empty : !t
  %d = tl.empty : !t
  %e = tl.empty : !t
  %v = tl.view %e : !t -> tensor<2x4xf32>
  tl.launch @copy grid [1] on %a, %b : !t, !t
  tl.clear %c : !t
  tl.launch @copy grid [1] on %b, %c : !t, !t
  tl.launch @copy grid [1] on %c, %d : !t, !t
  tl.launch @copy grid [1] on %d, %e : !t, !t
  func.return %d, %v : !t, tensor<2x4xf32>
}

// CHECK:         %e = tl.empty
// CHECK-NEXT:    %v = tl.view %e
// CHECK-NEXT:    %b = tl.empty
// CHECK-NEXT:    tl.launch @copy grid [1] on %a, %b
// CHECK-NEXT:    %c = tl.empty
// CHECK-NEXT:    tl.clear %c
// CHECK-NEXT:    tl.launch @copy grid [1] on %b, %c
// CHECK-NEXT:    tl.dealloc %b
// CHECK-NEXT:    %d = tl.empty
// CHECK-NEXT:    tl.launch @copy grid [1] on %c, %d
// CHECK-NEXT:    tl.dealloc %c
// CHECK-NEXT:    tl.launch @copy grid [1] on %d, %e
// CHECK-NEXT:    func.return %d, %v
