// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=none},tile' | filecheck %s

// The plan that is chosen is written on the function, launch numbers on its kernels.

func.func @shares(%a: tensor<300x16xf16, #compound.dims<M, K>>, %b: tensor<16x1000xf16, #compound.dims<K, N>>) -> tensor<300x1000xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<300x16xf16, #compound.dims<M, K>>, tensor<16x1000xf16, #compound.dims<K, N>> -> tensor<300x1000xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<300x1000xf32, #compound.dims<M, N>> -> tensor<300xf32, #compound.dims<M>>
  %p = compound.map div %c, %l : tensor<300x1000xf32, #compound.dims<M, N>>, tensor<300xf32, #compound.dims<M>> -> tensor<300x1000xf32, #compound.dims<M, N>>
  func.return %p : tensor<300x1000xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @shares(%a: tensor<300x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x1000xf16, #compound.dims<K, N @HBM>>) -> tensor<300x1000xf32, #compound.dims<M, N @HBM>> attributes {comet.plan = "c: M=5 N=16 warps=4 stages=3 group=1; c_k: K=1; p: M=75 warps=4 stages=3 group=1"} {
// CHECK-NEXT:     %c = schedule.spatial @c on grid [g0: M = 5, g1: N = 16] ins(%a, %b : tensor<300x16xf16, #compound.dims<M, K @HBM>>, tensor<16x1000xf16, #compound.dims<K, N @HBM>>) outs(tensor<300x1000xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>, schedule.launch = #schedule.launch<warps = 4, stages = 3, group = 1>} {
// CHECK-NEXT:     ^bb0(%a_1: tensor<64x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// CHECK-NEXT:       %c_1 = schedule.temporal @c_k [K = 1] ins(%a_1, %b_1 : tensor<64x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<64x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// CHECK-NEXT:       ^bb0(%a_2: tensor<64x16xf16, #compound.dims<M, K @SMEM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// CHECK-NEXT:         %c_2 = compound.contract %a_2, %b_2 : tensor<64x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<64x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         schedule.yield %c_2 : tensor<64x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %c_1 : tensor<64x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = schedule.spatial @p on grid [g0: M = 75] ins(%c : tensor<300x1000xf32, #compound.dims<M, N @HBM>>) outs(tensor<300x1000xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>, schedule.launch = #schedule.launch<warps = 4, stages = 3, group = 1>} {
// CHECK-NEXT:     ^bb0(%c_1: tensor<4x1000xf32, #compound.dims<M, N @REG>>):
// CHECK-NEXT:       %l = compound.reduce add %c_1 : tensor<4x1000xf32, #compound.dims<M, N @REG>> -> tensor<4xf32, #compound.dims<M @REG>>
// CHECK-NEXT:       %p_1 = compound.map div %c_1, %l : tensor<4x1000xf32, #compound.dims<M, N @REG>>, tensor<4xf32, #compound.dims<M @REG>> -> tensor<4x1000xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       schedule.yield %p_1 : tensor<4x1000xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %p : tensor<300x1000xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   }
