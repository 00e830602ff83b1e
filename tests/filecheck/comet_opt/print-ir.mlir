// RUN: comet-opt %s --print-ir-before=stream --print-ir-after=decompose -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},triton-distributed{strategy=full}' 2>&1 >/dev/null | filecheck %s
// RUN: comet-opt %s --print-ir-after-all -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},triton-distributed{strategy=full}' 2>&1 >/dev/null | filecheck %s --check-prefix=CHECK-ALL
// RUN: comet-opt %s --print-ir-after-change -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},triton-distributed{strategy=full}' 2>&1 >/dev/null | filecheck %s --check-prefix=CHECK-CHANGE
// RUN: comet-opt %s --print-ir-after=lower-views --print-ir-after=decompose --print-ir-after-change -p 'decompose,lower-views,canonicalize' 2>&1 >/dev/null | filecheck %s --check-prefix=CHECK-CHANGED
// RUN: comet-opt %s --print-type-aliases --print-ir-after=decompose -p decompose 2>&1 | filecheck %s --check-prefix=CHECK-ALIAS
// RUN: comet-opt %s --print-ir-before-all -p 'decompose,cse' 2>&1 >/dev/null | filecheck %s --check-prefix=CHECK-BEFORE
// RUN: comet-opt %s --print-between-passes -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},triton-distributed{strategy=full}' | filecheck %s --check-prefix=CHECK-BETWEEN
// RUN: comet-opt %s --time-passes -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},triton-distributed{strategy=full}' | filecheck %s --check-prefix=CHECK-TIME
// RUN: not comet-opt %s --print-ir-after=fuze -p decompose 2>&1 | filecheck %s --check-prefix=CHECK-NO

func.func @main(%a: tensor<8x4xf16>, %b: tensor<4x32xf16>) -> tensor<8x32xf16> {
  %p = compound.gemm_silu %a, %b : (tensor<8x4xf16>, tensor<4x32xf16>) -> tensor<8x32xf16>
  func.return %p : tensor<8x32xf16>
}

// Passes inside a pipeline are seen; those that are tried on copies are not.

// CHECK:      // -----// IR Dump After decompose //----- //
// CHECK-NEXT: builtin.module {
// CHECK:        compound.contract
// CHECK:      // -----// IR Dump Before stream //----- //
// CHECK-NOT:  IR Dump

// CHECK-ALL:     IR Dump After attach-hardware
// CHECK-ALL:     IR Dump After decompose
// CHECK-ALL:     IR Dump After stream
// CHECK-ALL:     IR Dump After fuse
// CHECK-ALL:     IR Dump After tile
// CHECK-ALL:     IR Dump After outline-kernels
// CHECK-ALL:     IR Dump After annotate-cost
// CHECK-ALL:     IR Dump After materialize-copies
// CHECK-ALL:     IR Dump After hoist-copies
// CHECK-ALL:     IR Dump After pad-blocks
// CHECK-ALL:     IR Dump After map-grid
// CHECK-ALL:     IR Dump After mask-copies
// CHECK-ALL:     IR Dump After lower-to-triton
// CHECK-ALL:     IR Dump After deduplicate-kernels
// CHECK-ALL:     IR Dump After deallocate-buffers
// CHECK-ALL-NOT: IR Dump

// CHECK-CHANGE:     IR Dump After decompose
// CHECK-CHANGE-NOT: IR Dump After {{lower-views|sink-renames|stream|sink-scales}}
// CHECK-CHANGE:     IR Dump After fuse
// CHECK-CHANGE-NOT: IR Dump After {{merge-partials|order-programs|unmask-loops}}
// CHECK-CHANGE:     IR Dump After materialize-copies
// CHECK-CHANGE:     IR Dump After lower-to-triton
// CHECK-CHANGE-NOT: IR Dump

// CHECK-CHANGED:     IR Dump After decompose
// CHECK-CHANGED-NOT: IR Dump

// CHECK-ALIAS:     !M8_K4_f16 = tensor<8x4xf16, #compound.dims<M, K>>
// CHECK-ALIAS:     %c = compound.contract %a, %b : !M8_K4_f16, !K4_N32_f16 -> !M8_N32_f32
// CHECK-ALIAS:     !M8_K4_f16 = tensor<8x4xf16, #compound.dims<M, K>>
// CHECK-ALIAS:     %c = compound.contract %a, %b : !M8_K4_f16, !K4_N32_f16 -> !M8_N32_f32

// CHECK-BEFORE:     IR Dump Before decompose
// CHECK-BEFORE:       compound.gemm_silu
// CHECK-BEFORE:     IR Dump Before cse
// CHECK-BEFORE-NOT: IR Dump

// CHECK-BETWEEN:     IR after attach-hardware:
// CHECK-BETWEEN:     IR after decompose:
// CHECK-BETWEEN:     IR after fuse:
// CHECK-BETWEEN:     IR after annotate-cost:
// CHECK-BETWEEN:     IR after materialize-copies:
// CHECK-BETWEEN:     IR after hoist-copies:
// CHECK-BETWEEN:     IR after pad-blocks:
// CHECK-BETWEEN:     IR after map-grid:
// CHECK-BETWEEN:     IR after mask-copies:
// CHECK-BETWEEN:     IR after lower-to-triton:
// CHECK-BETWEEN:     IR after deduplicate-kernels:
// CHECK-BETWEEN-NOT: IR after

// CHECK-TIME: Pass attach-hardware took {{[0-9.e-]+}} seconds
// CHECK-TIME: Pass tile took {{[0-9.e-]+}} seconds
// CHECK-TIME: Pass triton-distributed took {{[0-9.e-]+}} seconds, {{[0-9.e-]+}} of them outside its passes

// CHECK-NO: comet-opt: error: there is no pass named 'fuze'; did you mean 'fuse'?
