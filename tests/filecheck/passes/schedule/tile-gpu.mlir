// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=partial between=recompute},tile{factors="p: M=2; l_n: N=3; c_k: K=4; p_n: N=2; c_k_2: K=4"}' | filecheck %s

// A plan gives rows to launch grids and loops, by the names of nodes.

func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K>>, %b: tensor<16x64xf16, #compound.dims<K, N>>) -> tensor<32x64xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<32x16xf16, #compound.dims<M, K>>, tensor<16x64xf16, #compound.dims<K, N>> -> tensor<32x64xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N>> -> tensor<32xf32, #compound.dims<M>>
  %p = compound.map div %c, %l : tensor<32x64xf32, #compound.dims<M, N>>, tensor<32xf32, #compound.dims<M>> -> tensor<32x64xf32, #compound.dims<M, N>>
  func.return %p : tensor<32x64xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x64xf16, #compound.dims<K, N @HBM>>) -> tensor<32x64xf32, #compound.dims<M, N @HBM>> attributes {comet.plan = "p: M=2 warps=4 stages=4 group=1; l_n: N=3; c_k: K=4; p_n: N=2; c_k_2: K=4"} {
// CHECK-NEXT:     %p = schedule.spatial @p on grid [g0: M = 2] ins(%a, %b : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>, schedule.launch = #schedule.launch<warps = 4, stages = 4, group = 1>} {
// CHECK-NEXT:     ^bb0(%a_1: tensor<16x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// CHECK-NEXT:       %l = schedule.temporal @l_n [N = 3] ins(%a_1, %b_1 : tensor<16x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<16xf32, #compound.dims<M @REG>>) combine ["add"] {
// CHECK-NEXT:       ^bb0(%a_2: tensor<16x16xf16, #compound.dims<M, K @HBM>>, %b_2: tensor<16x22xf16, #compound.dims<K, N @HBM>>):
// CHECK-NEXT:         %c = schedule.temporal @c_k [K = 4] ins(%a_2, %b_2 : tensor<16x16xf16, #compound.dims<M, K @HBM>>, tensor<16x22xf16, #compound.dims<K, N @HBM>>) outs(tensor<16x22xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// CHECK-NEXT:         ^bb0(%a_3: tensor<16x4xf16, #compound.dims<M, K @SMEM>>, %b_3: tensor<4x22xf16, #compound.dims<K, N @SMEM>>):
// CHECK-NEXT:           %c_1 = compound.contract %a_3, %b_3 : tensor<16x4xf16, #compound.dims<M, K @SMEM>>, tensor<4x22xf16, #compound.dims<K, N @SMEM>> -> tensor<16x22xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:           schedule.yield %c_1 : tensor<16x22xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         }
// CHECK-NEXT:         %l_1 = compound.reduce add %c : tensor<16x22xf32, #compound.dims<M, N @REG>> -> tensor<16xf32, #compound.dims<M @REG>>
// CHECK-NEXT:         schedule.yield %l_1 : tensor<16xf32, #compound.dims<M @REG>>
// CHECK-NEXT:       }
// CHECK-NEXT:       %p_1 = schedule.temporal @p_n [N = 2] ins(%a_1, %b_1, %l : tensor<16x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>, tensor<16xf32, #compound.dims<M @REG>>) outs(tensor<16x64xf32, #compound.dims<M, N @HBM>>) {
// CHECK-NEXT:       ^bb0(%a_2: tensor<16x16xf16, #compound.dims<M, K @HBM>>, %b_2: tensor<16x32xf16, #compound.dims<K, N @HBM>>, %l_1: tensor<16xf32, #compound.dims<M @REG>>):
// CHECK-NEXT:         %c = schedule.temporal @c_k_2 [K = 4] ins(%a_2, %b_2 : tensor<16x16xf16, #compound.dims<M, K @HBM>>, tensor<16x32xf16, #compound.dims<K, N @HBM>>) outs(tensor<16x32xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// CHECK-NEXT:         ^bb0(%a_3: tensor<16x4xf16, #compound.dims<M, K @SMEM>>, %b_3: tensor<4x32xf16, #compound.dims<K, N @SMEM>>):
// CHECK-NEXT:           %c_1 = compound.contract %a_3, %b_3 : tensor<16x4xf16, #compound.dims<M, K @SMEM>>, tensor<4x32xf16, #compound.dims<K, N @SMEM>> -> tensor<16x32xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:           schedule.yield %c_1 : tensor<16x32xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         }
// CHECK-NEXT:         %p_2 = compound.map div %c, %l_1 : tensor<16x32xf32, #compound.dims<M, N @REG>>, tensor<16xf32, #compound.dims<M @REG>> -> tensor<16x32xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         schedule.yield %p_2 : tensor<16x32xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %p_1 : tensor<16x64xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %p : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   }
