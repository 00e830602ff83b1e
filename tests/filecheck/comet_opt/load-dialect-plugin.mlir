// RUN: comet-opt %S/../../../samples/custom_op/gemm_sigmoid_gate.mlir --load-dialect-plugin %S/../../../samples/custom_op/gemm_sigmoid_gate.py -p decompose | filecheck %s

// An op of a plug-in is decomposed by the method of its class.

// CHECK-LABEL: func.func @gemm_sigmoid_gate(%a: tensor<128x64xf16, #compound.dims<M, K>>,
// CHECK-NEXT:    %c = compound.contract %a, %b
// CHECK-NEXT:    %minus = compound.fill -1.0
// CHECK-NEXT:    %one = compound.fill 1.0
// CHECK-NEXT:    %0 = compound.map mult %c, %minus
// CHECK-NEXT:    %e = compound.map exp %0
// CHECK-NEXT:    %divisor = compound.map add %e, %one
// CHECK-NEXT:    %g_1 = compound.cast %g
// CHECK-NEXT:    %y = compound.map div %g_1, %divisor
// CHECK-NEXT:    %y_1 = compound.cast %y
// CHECK-NEXT:    func.return %y_1
