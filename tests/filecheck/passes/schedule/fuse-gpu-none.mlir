// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=none}' | filecheck %s

// The product has a kernel of its own; the other holds a row.

func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K>>, %b: tensor<16x64xf16, #compound.dims<K, N>>) -> tensor<32x64xf32, #compound.dims<M, N>> {
  %c = compound.contract %a, %b : tensor<32x16xf16, #compound.dims<M, K>>, tensor<16x64xf16, #compound.dims<K, N>> -> tensor<32x64xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N>> -> tensor<32xf32, #compound.dims<M>>
  %p = compound.map div %c, %l : tensor<32x64xf32, #compound.dims<M, N>>, tensor<32xf32, #compound.dims<M>> -> tensor<32x64xf32, #compound.dims<M, N>>
  func.return %p : tensor<32x64xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @shares(%a: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b: tensor<16x64xf16, #compound.dims<K, N @HBM>>) -> tensor<32x64xf32, #compound.dims<M, N @HBM>> attributes {{{comet.plan = "c: M=[0-9]+ N=[0-9]+ warps=[0-9]+ stages=[0-9]+ group=[0-9]+; c_k: K=[0-9]+; p: M=[0-9]+ warps=[0-9]+ stages=[0-9]+ group=[0-9]+"}}} {
// CHECK-NEXT:     %c = schedule.spatial @c on grid [g0: M = 1, g1: N = 1] ins(%a, %b : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>} {
// CHECK-NEXT:     ^bb0(%a_1: tensor<32x16xf16, #compound.dims<M, K @HBM>>, %b_1: tensor<16x64xf16, #compound.dims<K, N @HBM>>):
// CHECK-NEXT:       %c_1 = schedule.temporal @c_k [K = 1] ins(%a_1, %b_1 : tensor<32x16xf16, #compound.dims<M, K @HBM>>, tensor<16x64xf16, #compound.dims<K, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @REG>>) combine ["add"] {
// CHECK-NEXT:       ^bb0(%a_2: tensor<32x16xf16, #compound.dims<M, K @SMEM>>, %b_2: tensor<16x64xf16, #compound.dims<K, N @SMEM>>):
// CHECK-NEXT:         %c_2 = compound.contract %a_2, %b_2 : tensor<32x16xf16, #compound.dims<M, K @SMEM>>, tensor<16x64xf16, #compound.dims<K, N @SMEM>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:         schedule.yield %c_2 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = schedule.spatial @p on grid [g0: M = 1] ins(%c : tensor<32x64xf32, #compound.dims<M, N @HBM>>) outs(tensor<32x64xf32, #compound.dims<M, N @HBM>>) attributes {comet.cost = #cost.estimate<paper, ns{{, latency = [0-9]+}}>} {
// CHECK-NEXT:     ^bb0(%c_1: tensor<32x64xf32, #compound.dims<M, N @REG>>):
// CHECK-NEXT:       %l = compound.reduce add %c_1 : tensor<32x64xf32, #compound.dims<M, N @REG>> -> tensor<32xf32, #compound.dims<M @REG>>
// CHECK-NEXT:       %p_1 = compound.map div %c_1, %l : tensor<32x64xf32, #compound.dims<M, N @REG>>, tensor<32xf32, #compound.dims<M @REG>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       schedule.yield %p_1 : tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %p : tensor<32x64xf32, #compound.dims<M, N @HBM>>
// CHECK-NEXT:   }

// What nobody needs is dropped, a fold of what another fold makes.

func.func @unused(%x: tensor<8x4xf32, #compound.dims<M, N>>) -> tensor<8x4xf32, #compound.dims<M, N>> {
  %zero = compound.fill 0.0 : tensor<8xf32, #compound.dims<M>>
  %sum = compound.fold over "N" ins(%x : tensor<8x4xf32, #compound.dims<M, N>>) init(%zero : tensor<8xf32, #compound.dims<M>>) step {
  ^bb0(%chunk: tensor<8x4xf32, #compound.dims<M, N>>, %old: tensor<8xf32, #compound.dims<M>>):
    %now = compound.reduce add %chunk : tensor<8x4xf32, #compound.dims<M, N>> -> tensor<8xf32, #compound.dims<M>>
    %new = compound.map add %old, %now : tensor<8xf32, #compound.dims<M>>, tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
    compound.yield %new : tensor<8xf32, #compound.dims<M>>
  } merge {
  ^bb0(%a: tensor<8xf32, #compound.dims<M>>, %b: tensor<8xf32, #compound.dims<M>>):
    %new = compound.map add %a, %b : tensor<8xf32, #compound.dims<M>>, tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
    compound.yield %new : tensor<8xf32, #compound.dims<M>>
  } -> tensor<8xf32, #compound.dims<M>>
  %view = compound.rename %sum : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<K>>
  %start = compound.fill 0.0 : tensor<f32, #compound.dims<>>
  %total = compound.fold over "K" ins(%view : tensor<8xf32, #compound.dims<K>>) init(%start : tensor<f32, #compound.dims<>>) step {
  ^bb0(%chunk: tensor<8xf32, #compound.dims<K>>, %old: tensor<f32, #compound.dims<>>):
    %now = compound.reduce add %chunk : tensor<8xf32, #compound.dims<K>> -> tensor<f32, #compound.dims<>>
    %new = compound.map add %old, %now : tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } merge {
  ^bb0(%a: tensor<f32, #compound.dims<>>, %b: tensor<f32, #compound.dims<>>):
    %new = compound.map add %a, %b : tensor<f32, #compound.dims<>>, tensor<f32, #compound.dims<>> -> tensor<f32, #compound.dims<>>
    compound.yield %new : tensor<f32, #compound.dims<>>
  } -> tensor<f32, #compound.dims<>>
  %y = compound.map exp %x : tensor<8x4xf32, #compound.dims<M, N>> -> tensor<8x4xf32, #compound.dims<M, N>>
  func.return %y : tensor<8x4xf32, #compound.dims<M, N>>
}

// CHECK:        func.func @unused(
// CHECK-NEXT:     %y = schedule.spatial @y
// CHECK-NOT:      compound.reduce
// CHECK:          func.return %y
