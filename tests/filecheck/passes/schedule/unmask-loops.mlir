// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},stream,fuse{strategy=full},tile' -o %t.mlir
// RUN: comet-opt %t.mlir --split-input-file -p unmask-loops | filecheck %s
// RUN: comet-opt %t.mlir --split-input-file -p 'unmask-loops{loops=none}' | filecheck %s --check-prefix NONE
// RUN: comet-opt %s --split-input-file --explain -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full split=none specialize=false}' -t triton -o %t 2>&1 | filecheck %s --check-prefix EXPLAIN
// RUN: filecheck %s --check-prefix TRITON --input-file %t

// Only the tiles on the diagonal need the mask.

!x = tensor<4x32x4096x128xbf16>

func.func @causal(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v causal : (!x, !x, !x) -> !x
  func.return %o : !x
}

// CHECK-LABEL: func.func @causal
// CHECK:         schedule.temporal @{{.*}} [N = {{[0-9]+}}] unmask ins(

// NONE-LABEL:  func.func @causal
// NONE-NOT:      unmask
// NONE:          func.return

// TRITON-LABEL: def causal_kernel
// TRITON:         middle = tl.maximum(
// TRITON-NEXT:      tl.minimum(tl.min(offs_m, axis=0) + 1, stop), 0
// TRITON-NEXT:    ) // BLOCK_N * BLOCK_N
// TRITON:         # schedule.temporal {{.*}} without a mask
// TRITON:         for n in range(0, middle, BLOCK_N):
// TRITON-NOT:       tl.where
// TRITON:         for n in range(middle, stop, BLOCK_N):
// TRITON:           tl.where(visible,

// EXPLAIN:      mask for @o
// EXPLAIN-NEXT:   candidate {{ *}}us  limited by
// EXPLAIN-NEXT:   always
// EXPLAIN-NEXT: * where needed

// -----

// Few iterations: a second pipeline to fill costs more than masks.

!x = tensor<1x2x256x64xbf16>

func.func @short(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v causal : (!x, !x, !x) -> !x
  func.return %o : !x
}

// CHECK-LABEL: func.func @short
// CHECK-NOT:     unmask
// CHECK:         func.return
