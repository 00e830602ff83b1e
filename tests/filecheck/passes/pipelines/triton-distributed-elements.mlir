// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed' 2>&1 | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full to=dataflow}' | filecheck %s --check-prefix=PRICED

// No kernel takes elements of f64, which is known before the search; a launch plan can be priced.

!X = tensor<64x96xf32, #compound.dims<M, N>>
!M = tensor<64xf64, #compound.dims<M>>
func.func @sums(%x: !X) -> !M {
  %m = compound.reduce add %x : !X -> tensor<64xf32, #compound.dims<M>>
  %y = compound.cast %m : tensor<64xf32, #compound.dims<M>> -> !M
  func.return %y : !M
}

// CHECK: {{.*}}.mlir:10:3: error: triton-distributed: Triton kernels take elements of f16, bf16, f32, i32, i64, i8 and i1, not f64; take one of these, or use to=dataflow, which only prices kernels
// PRICED: dataflow.kernel @sums_kernel
