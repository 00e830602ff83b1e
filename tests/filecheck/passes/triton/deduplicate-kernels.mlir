// RUN: comet-opt %s -p deduplicate-kernels | filecheck %s

// Kernels that differ in names and comments only are one; those that compute something else stay.

!t = tensor<8xf32>

tl.kernel @first(%src: !tl.ptr<f32>, %dst: !tl.ptr<f32>, %N: !tl.constexpr<8>) attributes {tl.comment = "layer 1"} {
  %offs = tl.arange %N : !tl.constexpr<8> -> tensor<8xi32>
  %p = tl.addptr %src, %offs : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  %x = tl.load %p : tensor<8x!tl.ptr<f32>> -> !t
  %q = tl.addptr %dst, %offs : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  tl.store %q, %x : tensor<8x!tl.ptr<f32>>, !t
}

tl.kernel @second(%in: !tl.ptr<f32>, %out: !tl.ptr<f32>, %M: !tl.constexpr<8>) attributes {tl.comment = "layer 2"} {
  %0 = tl.arange %M : !tl.constexpr<8> -> tensor<8xi32>
  %1 = tl.addptr %in, %0 : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  %2 = tl.load %1 {tl.comment = "HBM -> REG"} : tensor<8x!tl.ptr<f32>> -> !t
  %3 = tl.addptr %out, %0 : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  tl.store %3, %2 : tensor<8x!tl.ptr<f32>>, !t
}

// It stores where it loads.

tl.kernel @third(%src: !tl.ptr<f32>, %dst: !tl.ptr<f32>, %N: !tl.constexpr<8>) {
  %offs = tl.arange %N : !tl.constexpr<8> -> tensor<8xi32>
  %p = tl.addptr %src, %offs : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  %x = tl.load %p : tensor<8x!tl.ptr<f32>> -> !t
  %q = tl.addptr %src, %offs : (!tl.ptr<f32>, tensor<8xi32>) -> tensor<8x!tl.ptr<f32>>
  tl.store %q, %x : tensor<8x!tl.ptr<f32>>, !t
}

func.func @copies(%a: !t) -> !t {
  %b = tl.empty : !t
  %c = tl.empty : !t
  tl.launch @first grid [1] on %a, %b : !t, !t
  tl.launch @second grid [1] on %b, %c : !t, !t
  tl.launch @third grid [1] on %c, %c : !t, !t
  func.return %c : !t
}

// CHECK:         tl.kernel @first(
// CHECK-NOT:     tl.kernel @second(
// CHECK:         tl.kernel @third(
// CHECK:         tl.launch @first grid [1] on %a, %b
// CHECK-NEXT:    tl.launch @first grid [1] on %b, %c
// CHECK-NEXT:    tl.launch @third grid [1] on %c, %c
