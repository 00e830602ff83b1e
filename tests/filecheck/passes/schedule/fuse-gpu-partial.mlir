// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=partial between=recompute}' | filecheck %s --check-prefix=TWICE
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=partial between=spill}' | filecheck %s --check-prefix=KEPT

// Two sweeps over N; the second computes the product again, or reads it back.

func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K>>, %b: tensor<16x64xf16, #compound.dims<K, N>>) -> tensor<32x64xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<32x16xf16, #compound.dims<M, K>>, tensor<16x64xf16, #compound.dims<K, N>> -> tensor<32x64xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N>> -> tensor<32xf32, #compound.dims<M>>
  %p = compound.map div %c, %l : tensor<32x64xf32, #compound.dims<M, N>>, tensor<32xf32, #compound.dims<M>> -> tensor<32x64xf32, #compound.dims<M, N>>
  func.return %p : tensor<32x64xf32, #compound.dims<M, N>>
}

// TWICE:        func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x64xf16, #compound.dims<K, N @HBM>>) -> tensor<32x64xf32, #compound.dims<M, N @HBM>> attributes {comet.plan = "p: M=2 warps=4 stages=4 group=1; l_n: N=1; c_k: K=1; p_n: N=1; c_k_2: K=1"} {
// TWICE-NEXT:     %p = schedule.spatial @p on grid [g0: M = 1] ins(%a, %b : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>} {
// TWICE-NEXT:     ^bb0(%a_1: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// TWICE-NEXT:       %l = schedule.temporal @l_n [N = 1] ins(%a_1, %b_1 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32xf32, #compound.dims<M @REG>>) combine ["add"] {
// TWICE-NEXT:       ^bb0(%a_2: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// TWICE-NEXT:         %c = schedule.temporal @c_k [K = 1] ins(%a_2, %b_2 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// TWICE-NEXT:         ^bb0(%a_3: tensor<32x16xf16, #compound.dims<M, K @SMEM>>, %b_3: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// TWICE-NEXT:           %c_1 = compound.contract %a_3, %b_3 : tensor<32x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:           schedule.yield %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:         }
// TWICE-NEXT:         %l_1 = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N @REG>> -> tensor<32xf32, #compound.dims<M @REG>>
// TWICE-NEXT:         schedule.yield %l_1 : tensor<32xf32, #compound.dims<M @REG>>
// TWICE-NEXT:       }
// TWICE-NEXT:       %p_1 = schedule.temporal @p_n [N = 1] ins(%a_1, %b_1, %l : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>, tensor<32xf32, #compound.dims<M @REG>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) {
// TWICE-NEXT:       ^bb0(%a_2: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @HBM>>, %l_1: tensor<32xf32, #compound.dims<M @REG>>):
// TWICE-NEXT:         %c = schedule.temporal @c_k_2 [K = 1] ins(%a_2, %b_2 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// TWICE-NEXT:         ^bb0(%a_3: tensor<32x16xf16, #compound.dims<M, K @SMEM>>, %b_3: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// TWICE-NEXT:           %c_1 = compound.contract %a_3, %b_3 : tensor<32x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:           schedule.yield %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:         }
// TWICE-NEXT:         %p_2 = compound.map div %c, %l_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>, tensor<32xf32, #compound.dims<M @REG>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:         schedule.yield %p_2 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// TWICE-NEXT:       }
// TWICE-NEXT:       schedule.yield %p_1 : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// TWICE-NEXT:     }
// TWICE-NEXT:     func.return %p : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// TWICE-NEXT:   }

// KEPT:        func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x64xf16, #compound.dims<K, N @HBM>>) -> tensor<32x64xf32, #compound.dims<M, N @HBM>> attributes {comet.plan = "p: M=2 warps=4 stages=3 group=1; l_n: N=1; c_k: K=1; p_n: N=1"} {
// KEPT-NEXT:     %p = schedule.spatial @p on grid [g0: M = 1] ins(%a, %b : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>} {
// KEPT-NEXT:     ^bb0(%a_1: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// KEPT-NEXT:       %l, %c = schedule.temporal @l_n [N = 1] ins(%a_1, %b_1 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32xf32, #compound.dims<M @REG>>, tensor<32x64xf32, #compound.dims<M, N @HBM>>) combine ["add", "none"] {
// KEPT-NEXT:       ^bb0(%a_2: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// KEPT-NEXT:         %c_1 = schedule.temporal @c_k [K = 1] ins(%a_2, %b_2 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// KEPT-NEXT:         ^bb0(%a_3: tensor<32x16xf16, #compound.dims<M, K @SMEM>>, %b_3: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// KEPT-NEXT:           %c_2 = compound.contract %a_3, %b_3 : tensor<32x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// KEPT-NEXT:           schedule.yield %c_2 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// KEPT-NEXT:         }
// KEPT-NEXT:         %l_1 = compound.reduce add %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>> -> tensor<32xf32, #compound.dims<M @REG>>
// KEPT-NEXT:         schedule.yield %l_1, %c_1 : tensor<32xf32, #compound.dims<M @REG>>, tensor<32x64xf32, #compound.dims<M, N @REG>>
// KEPT-NEXT:       }
// KEPT-NEXT:       %p_1 = schedule.temporal @p_n [N = 1] ins(%c, %l : tensor<32x64xf32, #compound.dims<M, N @HBM>>, tensor<32xf32, #compound.dims<M @REG>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) {
// KEPT-NEXT:       ^bb0(%c_1: tensor<32x64xf32, #compound.dims<M, N @REG>>, %l_1: tensor<32xf32, #compound.dims<M @REG>>):
// KEPT-NEXT:         %p_2 = compound.map div %c_1, %l_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>, tensor<32xf32, #compound.dims<M @REG>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// KEPT-NEXT:         schedule.yield %p_2 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// KEPT-NEXT:       }
// KEPT-NEXT:       schedule.yield %p_1 : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// KEPT-NEXT:     }
// KEPT-NEXT:     func.return %p : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// KEPT-NEXT:   }
