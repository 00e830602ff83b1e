// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=full}' | filecheck %s

// A row of N fits one program: one kernel, a loop over K, everything else in registers.

func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K>>, %b: tensor<16x64xf16, #compound.dims<K, N>>) -> tensor<32x64xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<32x16xf16, #compound.dims<M, K>>, tensor<16x64xf16, #compound.dims<K, N>> -> tensor<32x64xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N>> -> tensor<32xf32, #compound.dims<M>>
  %p = compound.map div %c, %l : tensor<32x64xf32, #compound.dims<M, N>>, tensor<32xf32, #compound.dims<M>> -> tensor<32x64xf32, #compound.dims<M, N>>
  func.return %p : tensor<32x64xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x64xf16, #compound.dims<K, N @HBM>>) -> tensor<32x64xf32, #compound.dims<M, N @HBM>> attributes {comet.plan = "p: M=2 warps=4 stages=3 group=1; c_k: K=1"} {
// CHECK-NEXT:     %p = schedule.spatial @p on grid [g0: M = 1] ins(%a, %b : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>} {
// CHECK-NEXT:     ^bb0(%a_1: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// CHECK-NEXT:       %c = schedule.temporal @c_k [K = 1] ins(%a_1, %b_1 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// CHECK-NEXT:       ^bb0(%a_2: tensor<32x16xf16, #compound.dims<M, K @SMEM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// CHECK-NEXT:         %c_1 = compound.contract %a_2, %b_2 : tensor<32x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         schedule.yield %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       }
// CHECK-NEXT:       %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N @REG>> -> tensor<32xf32, #compound.dims<M @REG>>
// CHECK-NEXT:       %p_1 = compound.map div %c, %l : tensor<32x64xf32, #compound.dims<M, N @REG>>, tensor<32xf32, #compound.dims<M @REG>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       schedule.yield %p_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %p : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   }
