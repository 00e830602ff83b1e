// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{persist=all strategy=full factors="p: M=1024 warps=8 stages=1" to=dataflow}' -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full factors="p: M=1024 warps=8 stages=1" to=dataflow},persist-programs{kernels=all resident=false}' | filecheck %s --check-prefix LOADED
// RUN: comet-opt %t.mlir -p materialize-copies,hoist-copies | filecheck %s --check-prefix COPIES
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{persist=all strategy=full factors="p: M=1024 warps=8 stages=1"}' -t triton | filecheck %s --check-prefix TRITON

// A tile has all columns and terms, so that all tiles read all of %b. With it in shared
// memory once there is room for two stages of %a, otherwise for one of both.

func.func @gemm_softmax(%a: tensor<65536x256xf16>, %b: tensor<256x256xf16>) -> tensor<65536x256xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<65536x256xf16>, tensor<256x256xf16>) -> tensor<65536x256xf16>
  func.return %p : tensor<65536x256xf16>
}

// CHECK:  #schedule.launch<warps = 8, stages = 2, group = 1, persistent = 132, resident>
// LOADED: #schedule.launch<warps = 8, stages = 1, group = 1, persistent = 132>

// COPIES:      schedule.spatial {{.*}}on grid [g0: M = 1024]
// COPIES-NEXT: ^bb0(%{{.*}}: {{.*}}, %[[B:.*]]: {{.*}}):
// COPIES-NEXT:   schedule.copy %[[B]] resident : {{.*}} @SMEM>>
// COPIES-NEXT:   schedule.temporal
// COPIES:          schedule.copy
// COPIES-SAME:     #compound.dims<M, K @SMEM>>

// TRITON:      b_tile = tl.load(b_ptr
// TRITON:      for tile in range(program, 1024, 132):
// TRITON:          a_tile = tl.load(a_ptr
// TRITON-NOT:      tl.load
// TRITON:          c = tl.dot(a_tile, b_tile)
// TRITON:      gemm_softmax_kernel[(132,)](
// TRITON:      num_stages=2,
