// RUN: comet-opt %s | comet-opt | filecheck %s
// RUN: comet-opt %s --print-op-generic | comet-opt | filecheck %s
// RUN: comet-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

!A = tensor<8x16xf16, #compound.dims<M, K @HBM>>
!B = tensor<16x4xf16, #compound.dims<K, N @HBM>>
!C = tensor<8x4xf32, #compound.dims<M, N @HBM>>
!a = tensor<2x16xf16, #compound.dims<M, K @HBM>>
!as = tensor<2x16xf16, #compound.dims<M, K @SMEM>>
!bs = tensor<16x4xf16, #compound.dims<K, N @SMEM>>
!cr = tensor<2x4xf32, #compound.dims<M, N @REG>>
!c = tensor<2x4xf32, #compound.dims<M, N @HBM>>

// Two programs compute four tiles, and load %b once each.
func.func @f(%a: !A, %b: !B) -> !C {
  %c = schedule.spatial on grid [g0: M = 4] ins(%a, %b : !A, !B) outs(!C) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 2, resident>} {
  ^bb0(%a1: !a, %b1: !B):
    %a2 = schedule.copy %a1 : !a -> !as
    %b2 = schedule.copy %b1 mask ["K"] resident : !B -> !bs
    %c1 = compound.contract %a2, %b2 : !as, !bs -> !cr
    %c2 = schedule.copy %c1 : !cr -> !c
    schedule.yield %c2 : !c
  }
  func.return %c : !C
}

// A thread of these has 96 registers at most.
func.func @g(%a: !A, %b: !B) -> !C {
  %c = schedule.spatial on grid [g0: M = 4] ins(%a, %b : !A, !B) outs(!C) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 2, registers = 96>} {
  ^bb0(%a1: !a, %b1: !B):
    %a2 = schedule.copy %a1 : !a -> !as
    %b2 = schedule.copy %b1 : !B -> !bs
    %c1 = compound.contract %a2, %b2 : !as, !bs -> !cr
    %c2 = schedule.copy %c1 : !cr -> !c
    schedule.yield %c2 : !c
  }
  func.return %c : !C
}

// A program of these is a cluster of two thread blocks.
"test.op"() {launch = #schedule.launch<warps = 4, stages = 2, group = 1, cluster = 2>} : () -> ()
"test.op"() {launch = #schedule.launch<warps = 4, stages = 2, group = 1, cluster = 1>} : () -> ()

// CHECK: schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 2, resident>
// CHECK: %b2 = schedule.copy %b1 mask ["K"] resident : tensor<16x4xf16, #compound.dims<K, N @HBM>> -> tensor<16x4xf16, #compound.dims<K, N @SMEM>>

// CHECK: schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 2, registers = 96>

// CHECK: "test.op"() {launch = #schedule.launch<warps = 4, stages = 2, group = 1, cluster = 2>}
// CHECK-NEXT: "test.op"() {launch = #schedule.launch<warps = 4, stages = 2, group = 1>}

// GENERIC: %b2 = "schedule.copy"(%b1) <{mask = ["K"], resident}> :
// GENERIC: schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, persistent = 2, resident>
