// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},stream,fuse{strategy=full},tile,outline-kernels,materialize-copies,hoist-copies,bound-loops' | filecheck %s
// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{ranks=1}' -t mlir | filecheck %s --check-prefix TRITON

// A query sees the keys before it: the loop ends after the last one that a program's queries see.

func.func @causal(%q: tensor<1x2x64x16xf16>, %k: tensor<1x2x256x16xf16>, %v: tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16> {
  %o = compound.attention %q, %k, %v causal : (tensor<1x2x64x16xf16>, tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16>
  func.return %o : tensor<1x2x64x16xf16>
}

// CHECK-LABEL: func.func @causal
// CHECK:         schedule.temporal @m_n [N = {{[0-9]+}}] until 1 ins(%{{[^,]*}}, %last

// TRITON-LABEL: tl.kernel @causal_kernel
// TRITON:         %[[MOST:[^ ]*]] = tl.reduce max %last axis 0
// TRITON:         %[[LEAST:[^ ]*]] = tl.reduce min %last axis 0
// TRITON:         %stop = tl.where
// TRITON:         tl.for %n : i32 = %{{[^ ]*}} : i32 to %stop

// -----

// Without a mask every iteration counts.

func.func @full(%q: tensor<1x2x64x16xf16>, %k: tensor<1x2x256x16xf16>, %v: tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x2x64x16xf16>, tensor<1x2x256x16xf16>, tensor<1x2x256x16xf16>) -> tensor<1x2x64x16xf16>
  func.return %o : tensor<1x2x64x16xf16>
}

// CHECK-LABEL: func.func @full
// CHECK-NOT:     until
// CHECK:         func.return
