// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!A = tensor<8x16xf16, #compound.dims<M, K @GB>>
!B = tensor<16x32xf16, #compound.dims<K, N @GB>>
!C = tensor<8x32xf16, #compound.dims<M, N @GB>>
!R = tensor<8xf16, #compound.dims<M @GB>>
!At = tensor<8x4xf16, #compound.dims<M, K @IB>>
!Bt = tensor<4x8xf16, #compound.dims<K, N @WB>>
!Bs = tensor<16x8xf16, #compound.dims<K, N @GB>>
!Ct = tensor<8x8xf16, #compound.dims<M, N @OB>>
!Rt = tensor<8xf16, #compound.dims<M @OB>>
collective.mesh @edge {x = 2, y = 2}
func.func @gemm_max(%a: !A, %b: !B) -> !R {
  %r = schedule.spatial @r on @edge [x: N = 2, y: N = 2] ins(%a, %b : !A, !B) outs(!R) combine ["max"] attributes {schedule.launch = #schedule.launch<warps = 8, stages = 2, group = 4>} {
  ^bb0(%as: !A, %bs: !Bs):
    %c = schedule.temporal @c_ob [K = 4] ins(%as, %bs : !A, !Bs) outs(!Ct) combine ["add"] attributes {schedule.bind = #schedule.binding<pipeline>} {
    ^bb0(%at: !At, %bt: !Bt):
      %ct = compound.contract %at, %bt : !At, !Bt -> !Ct
      schedule.yield %ct : !Ct
    }
    %m = schedule.temporal [M = 8] ins(%c : !Ct) outs(!Rt) {
    ^bb0(%row: tensor<1x8xf16, #compound.dims<M, N @OB>>):
      %max = compound.reduce max %row : tensor<1x8xf16, #compound.dims<M, N @OB>> -> tensor<1xf16, #compound.dims<M @OB>>
      schedule.yield %max : tensor<1xf16, #compound.dims<M @OB>>
    }
    schedule.yield %m : !Rt
  }
  func.return %r : !R
}
func.func @sum(%c: !C) -> !R {
  %r = schedule.spatial on grid [g0: M = 3, g1: N = 4] ins(%c : !C) outs(!R) combine ["fold"] {
  ^bb0(%t: tensor<3x8xf16, #compound.dims<M, N @GB>>):
    %zero = compound.fill 0.000000e+00 : tensor<3xf16, #compound.dims<M @OB>>
    %s = schedule.temporal [N = 2] ins(%t : tensor<3x8xf16, #compound.dims<M, N @GB>>) iter_args(%zero : tensor<3xf16, #compound.dims<M @OB>>) outs(tensor<3xf16, #compound.dims<M @OB>>) combine ["fold"] {
    ^bb0(%u: tensor<3x4xf16, #compound.dims<M, N @OB>>, %old: tensor<3xf16, #compound.dims<M @OB>>):
      %now = compound.reduce add %u : tensor<3x4xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
      %new = compound.map add %old, %now : tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
      schedule.yield %new : tensor<3xf16, #compound.dims<M @OB>>
    }
    schedule.yield %s : tensor<3xf16, #compound.dims<M @OB>>
  } merge {
  ^bb0(%x: tensor<3xf16, #compound.dims<M @OB>>, %y: tensor<3xf16, #compound.dims<M @OB>>):
    %xy = compound.map add %x, %y : tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
    compound.yield %xy : tensor<3xf16, #compound.dims<M @OB>>
  }
  func.return %r : !R
}
func.func @copies(%c: !C) -> !C {
  %r = schedule.spatial on grid [g0: M = 2] blocks <M: 4 -> 4, N: 32 -> 64> programs <2 of 4 on 0> reversed ["M"] ins(%c : !C) outs(!C) {
  ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>):
    %t = schedule.copy %c1 mask ["M", "N"] pad max descriptor : tensor<4x32xf16, #compound.dims<M, N @GB>> -> tensor<4x32xf16, #compound.dims<M, N @OB>>
    %u = schedule.copy %t : tensor<4x32xf16, #compound.dims<M, N @OB>> -> tensor<4x32xf16, #compound.dims<M, N @GB>>
    schedule.yield %u : tensor<4x32xf16, #compound.dims<M, N @GB>>
  }
  func.return %r : !C
}
func.func @bounded(%c: !C, %r: !R) -> !R {
  %m = schedule.temporal [N = 4] partial until 1 from 1 since 1 unmask ins(%c, %r : !C, !R) outs(!Rt) combine ["max"] {
  ^bb0(%t: tensor<8x8xf16, #compound.dims<M, N @OB>>, %last: !Rt):
    %max = compound.reduce max %t : tensor<8x8xf16, #compound.dims<M, N @OB>> -> !Rt
    schedule.yield %max : !Rt
  }
  func.return %r : !R
}
// A node hands on what its body works on as a whole.
func.func @with(%c: !C) -> !C {
  %e = "test.op"() : () -> !dataflow.epoch
  %r = schedule.spatial on grid [g0: M = 2] ins(%c : !C) with(%e : !dataflow.epoch) outs(!C) {
  ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>, %e1: !dataflow.epoch):
    %z = schedule.temporal [N = 2] ins(%c1 : tensor<4x32xf16, #compound.dims<M, N @GB>>) with(%e1 : !dataflow.epoch) outs(tensor<4x32xf16, #compound.dims<M, N @GB>>) {
    ^bb0(%c2: tensor<4x16xf16, #compound.dims<M, N @GB>>, %e2: !dataflow.epoch):
      schedule.yield %c2 : tensor<4x16xf16, #compound.dims<M, N @GB>>
    }
    schedule.yield %z : tensor<4x32xf16, #compound.dims<M, N @GB>>
  }
  func.return %r : !C
}

// CHECK:      builtin.module {
// CHECK-NEXT:   collective.mesh @edge {x = 2, y = 2}
// CHECK-NEXT:   func.func @gemm_max(%a: tensor<8x16xf16, #compound.dims<M, K @GB>>, %b: tensor<16x32xf16, #compound.dims<K, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>> {
// CHECK-NEXT:     %r = schedule.spatial @r on @edge [x: N = 2, y: N = 2] ins(%a, %b : tensor<8x16xf16, #compound.dims<M, K @GB>>, tensor<16x32xf16, #compound.dims<K, N @GB>>) outs(tensor<8xf16, #compound.dims<M @GB>>) combine ["max"] attributes {schedule.launch = #schedule.launch<warps = 8, stages = 2, group = 4>} {
// CHECK-NEXT:     ^bb0(%as: tensor<8x16xf16, #compound.dims<M, K @GB>>, %bs: tensor<16x8xf16, #compound.dims<K, N @GB>>):
// CHECK-NEXT:       %c = schedule.temporal @c_ob [K = 4] ins(%as, %bs : tensor<8x16xf16, #compound.dims<M, K @GB>>, tensor<16x8xf16, #compound.dims<K, N @GB>>) outs(tensor<8x8xf16, #compound.dims<M, N @OB>>) combine ["add"] attributes {schedule.bind = #schedule.binding<pipeline>} {
// CHECK-NEXT:       ^bb0(%at: tensor<8x4xf16, #compound.dims<M, K @IB>>, %bt: tensor<4x8xf16, #compound.dims<K, N @WB>>):
// CHECK-NEXT:         %ct = compound.contract %at, %bt : tensor<8x4xf16, #compound.dims<M, K @IB>>, tensor<4x8xf16, #compound.dims<K, N @WB>> -> tensor<8x8xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:         schedule.yield %ct : tensor<8x8xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       %m = schedule.temporal [M = 8] ins(%c : tensor<8x8xf16, #compound.dims<M, N @OB>>) outs(tensor<8xf16, #compound.dims<M @OB>>) {
// CHECK-NEXT:       ^bb0(%row: tensor<1x8xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:         %max = compound.reduce max %row : tensor<1x8xf16, #compound.dims<M, N @OB>> -> tensor<1xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         schedule.yield %max : tensor<1xf16, #compound.dims<M @OB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %m : tensor<8xf16, #compound.dims<M @OB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8xf16, #compound.dims<M @GB>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @sum(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>> {
// CHECK-NEXT:     %r = schedule.spatial on grid [g0: M = 3, g1: N = 4] ins(%c : tensor<8x32xf16, #compound.dims<M, N @GB>>) outs(tensor<8xf16, #compound.dims<M @GB>>) combine ["fold"] {
// CHECK-NEXT:     ^bb0(%t: tensor<3x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:       %zero = compound.fill 0.000000e+00 : tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:       %s = schedule.temporal [N = 2] ins(%t : tensor<3x8xf16, #compound.dims<M, N @GB>>) iter_args(%zero : tensor<3xf16, #compound.dims<M @OB>>) outs(tensor<3xf16, #compound.dims<M @OB>>) combine ["fold"] {
// CHECK-NEXT:       ^bb0(%u: tensor<3x4xf16, #compound.dims<M, N @OB>>, %old: tensor<3xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:         %now = compound.reduce add %u : tensor<3x4xf16, #compound.dims<M, N @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         %new = compound.map add %old, %now : tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         schedule.yield %new : tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %s : tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:     } merge {
// CHECK-NEXT:     ^bb0(%x: tensor<3xf16, #compound.dims<M @OB>>, %y: tensor<3xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:       %xy = compound.map add %x, %y : tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>> -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:       compound.yield %xy : tensor<3xf16, #compound.dims<M @OB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8xf16, #compound.dims<M @GB>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @copies(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8x32xf16, #compound.dims<M, N @GB>> {
// CHECK-NEXT:     %r = schedule.spatial on grid [g0: M = 2] blocks <M: 4 -> 4, N: 32 -> 64> programs <2 of 4 on 0> reversed ["M"] ins(%c : tensor<8x32xf16, #compound.dims<M, N @GB>>) outs(tensor<8x32xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:     ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:       %t = schedule.copy %c1 mask ["M", "N"] pad max descriptor : tensor<4x32xf16, #compound.dims<M, N @GB>> -> tensor<4x32xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:       %u = schedule.copy %t : tensor<4x32xf16, #compound.dims<M, N @OB>> -> tensor<4x32xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:       schedule.yield %u : tensor<4x32xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8x32xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @bounded(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>, %r: tensor<8xf16, #compound.dims<M @GB>>) -> tensor<8xf16, #compound.dims<M @GB>> {
// CHECK-NEXT:     %m = schedule.temporal [N = 4] partial until 1 from 1 since 1 unmask ins(%c, %r : tensor<8x32xf16, #compound.dims<M, N @GB>>, tensor<8xf16, #compound.dims<M @GB>>) outs(tensor<8xf16, #compound.dims<M @OB>>) combine ["max"] {
// CHECK-NEXT:     ^bb0(%t: tensor<8x8xf16, #compound.dims<M, N @OB>>, %last: tensor<8xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:       %max = compound.reduce max %t : tensor<8x8xf16, #compound.dims<M, N @OB>> -> tensor<8xf16, #compound.dims<M @OB>>
// CHECK-NEXT:       schedule.yield %max : tensor<8xf16, #compound.dims<M @OB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8xf16, #compound.dims<M @GB>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @with(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8x32xf16, #compound.dims<M, N @GB>> {
// CHECK-NEXT:     %e = "test.op"() : () -> !dataflow.epoch
// CHECK-NEXT:     %r = schedule.spatial on grid [g0: M = 2] ins(%c : tensor<8x32xf16, #compound.dims<M, N @GB>>) with(%e : !dataflow.epoch) outs(tensor<8x32xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:     ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>, %e1: !dataflow.epoch):
// CHECK-NEXT:       %z = schedule.temporal [N = 2] ins(%c1 : tensor<4x32xf16, #compound.dims<M, N @GB>>) with(%e1 : !dataflow.epoch) outs(tensor<4x32xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:       ^bb0(%c2: tensor<4x16xf16, #compound.dims<M, N @GB>>, %e2: !dataflow.epoch):
// CHECK-NEXT:         schedule.yield %c2 : tensor<4x16xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %z : tensor<4x32xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8x32xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:   }
// CHECK-NEXT: }

// CHECK-GENERIC:      "builtin.module"() ({
// CHECK-GENERIC-NEXT:   "collective.mesh"() <{sym_name = "edge", axes = ["x", "y"], extents = array<i64: 2, 2>}> : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "gemm_max", function_type = (tensor<8x16xf16, #compound.dims<M, K @GB>>, tensor<16x32xf16, #compound.dims<K, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%a: tensor<8x16xf16, #compound.dims<M, K @GB>>, %b: tensor<16x32xf16, #compound.dims<K, N @GB>>):
// CHECK-GENERIC-NEXT:     %r = "schedule.spatial"(%a, %b) <{node_name = "r", mesh = @edge, loops = [#schedule.loop<x: N = 2>, #schedule.loop<y: N = 2>], combine = ["max"], operandSegmentSizes = array<i32: 2, 0>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%as: tensor<8x16xf16, #compound.dims<M, K @GB>>, %bs: tensor<16x8xf16, #compound.dims<K, N @GB>>):
// CHECK-GENERIC-NEXT:       %c = "schedule.temporal"(%as, %bs) <{node_name = "c_ob", loops = [#schedule.loop<K = 4>], combine = ["add"], operandSegmentSizes = array<i32: 2, 0, 0>}> ({
// CHECK-GENERIC-NEXT:       ^bb0(%at: tensor<8x4xf16, #compound.dims<M, K @IB>>, %bt: tensor<4x8xf16, #compound.dims<K, N @WB>>):
// CHECK-GENERIC-NEXT:         %ct = "compound.contract"(%at, %bt) : (tensor<8x4xf16, #compound.dims<M, K @IB>>, tensor<4x8xf16, #compound.dims<K, N @WB>>) -> tensor<8x8xf16, #compound.dims<M, N @OB>>
// CHECK-GENERIC-NEXT:         "schedule.yield"(%ct) : (tensor<8x8xf16, #compound.dims<M, N @OB>>) -> ()
// CHECK-GENERIC-NEXT:       }) {schedule.bind = #schedule.binding<pipeline>} : (tensor<8x16xf16, #compound.dims<M, K @GB>>, tensor<16x8xf16, #compound.dims<K, N @GB>>) -> tensor<8x8xf16, #compound.dims<M, N @OB>>
// CHECK-GENERIC-NEXT:       %m = "schedule.temporal"(%c) <{loops = [#schedule.loop<M = 8>], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
// CHECK-GENERIC-NEXT:       ^bb0(%row: tensor<1x8xf16, #compound.dims<M, N @OB>>):
// CHECK-GENERIC-NEXT:         %max = "compound.reduce"(%row) <{kind = #compound<reduce_kind max>}> : (tensor<1x8xf16, #compound.dims<M, N @OB>>) -> tensor<1xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:         "schedule.yield"(%max) : (tensor<1xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:       }) : (tensor<8x8xf16, #compound.dims<M, N @OB>>) -> tensor<8xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:       "schedule.yield"(%m) : (tensor<8xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:     }) {schedule.launch = #schedule.launch<warps = 8, stages = 2, group = 4>} : (tensor<8x16xf16, #compound.dims<M, K @GB>>, tensor<16x32xf16, #compound.dims<K, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8xf16, #compound.dims<M @GB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "sum", function_type = (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>):
// CHECK-GENERIC-NEXT:     %r = "schedule.spatial"(%c) <{loops = [#schedule.loop<g0: M = 3>, #schedule.loop<g1: N = 4>], combine = ["fold"], operandSegmentSizes = array<i32: 1, 0>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%t: tensor<3x8xf16, #compound.dims<M, N @GB>>):
// CHECK-GENERIC-NEXT:       %zero = "compound.fill"() <{value = 0.000000e+00 : f64}> : () -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:       %s = "schedule.temporal"(%t, %zero) <{loops = [#schedule.loop<N = 2>], combine = ["fold"], operandSegmentSizes = array<i32: 1, 1, 0>}> ({
// CHECK-GENERIC-NEXT:       ^bb0(%u: tensor<3x4xf16, #compound.dims<M, N @OB>>, %old: tensor<3xf16, #compound.dims<M @OB>>):
// CHECK-GENERIC-NEXT:         %now = "compound.reduce"(%u) <{kind = #compound<reduce_kind add>}> : (tensor<3x4xf16, #compound.dims<M, N @OB>>) -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:         %new = "compound.map"(%old, %now) <{kind = #compound<map_kind add>}> : (tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>>) -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:         "schedule.yield"(%new) : (tensor<3xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:       }) : (tensor<3x8xf16, #compound.dims<M, N @GB>>, tensor<3xf16, #compound.dims<M @OB>>) -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:       "schedule.yield"(%s) : (tensor<3xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:     }, {
// CHECK-GENERIC-NEXT:     ^bb0(%x: tensor<3xf16, #compound.dims<M @OB>>, %y: tensor<3xf16, #compound.dims<M @OB>>):
// CHECK-GENERIC-NEXT:       %xy = "compound.map"(%x, %y) <{kind = #compound<map_kind add>}> : (tensor<3xf16, #compound.dims<M @OB>>, tensor<3xf16, #compound.dims<M @OB>>) -> tensor<3xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:       "compound.yield"(%xy) : (tensor<3xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8xf16, #compound.dims<M @GB>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8xf16, #compound.dims<M @GB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "copies", function_type = (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8x32xf16, #compound.dims<M, N @GB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>):
// CHECK-GENERIC-NEXT:     %r = "schedule.spatial"(%c) <{loops = [#schedule.loop<g0: M = 2>], blocks = #schedule.blocks<M: 4 -> 4, N: 32 -> 64>, programs = #schedule.programs<2 of 4 on 0>, reversed = ["M"], operandSegmentSizes = array<i32: 1, 0>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>):
// CHECK-GENERIC-NEXT:       %t = "schedule.copy"(%c1) <{mask = ["M", "N"], pad = #compound<reduce_kind max>, descriptor}> : (tensor<4x32xf16, #compound.dims<M, N @GB>>) -> tensor<4x32xf16, #compound.dims<M, N @OB>>
// CHECK-GENERIC-NEXT:       %u = "schedule.copy"(%t) : (tensor<4x32xf16, #compound.dims<M, N @OB>>) -> tensor<4x32xf16, #compound.dims<M, N @GB>>
// CHECK-GENERIC-NEXT:       "schedule.yield"(%u) : (tensor<4x32xf16, #compound.dims<M, N @GB>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8x32xf16, #compound.dims<M, N @GB>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "bounded", function_type = (tensor<8x32xf16, #compound.dims<M, N @GB>>, tensor<8xf16, #compound.dims<M @GB>>) -> tensor<8xf16, #compound.dims<M @GB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>, %r: tensor<8xf16, #compound.dims<M @GB>>):
// CHECK-GENERIC-NEXT:     %m = "schedule.temporal"(%c, %r) <{loops = [#schedule.loop<N = 4>], partial, until = 1 : i64, start = 1 : i64, since = 1 : i64, unmask, combine = ["max"], operandSegmentSizes = array<i32: 2, 0, 0>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%t: tensor<8x8xf16, #compound.dims<M, N @OB>>, %last: tensor<8xf16, #compound.dims<M @OB>>):
// CHECK-GENERIC-NEXT:       %max = "compound.reduce"(%t) <{kind = #compound<reduce_kind max>}> : (tensor<8x8xf16, #compound.dims<M, N @OB>>) -> tensor<8xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:       "schedule.yield"(%max) : (tensor<8xf16, #compound.dims<M @OB>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x32xf16, #compound.dims<M, N @GB>>, tensor<8xf16, #compound.dims<M @GB>>) -> tensor<8xf16, #compound.dims<M @OB>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8xf16, #compound.dims<M @GB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "with", function_type = (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> tensor<8x32xf16, #compound.dims<M, N @GB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<8x32xf16, #compound.dims<M, N @GB>>):
// CHECK-GENERIC-NEXT:     %e = "test.op"() : () -> !dataflow.epoch
// CHECK-GENERIC-NEXT:     %r = "schedule.spatial"(%c, %e) <{loops = [#schedule.loop<g0: M = 2>], operandSegmentSizes = array<i32: 1, 1>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%c1: tensor<4x32xf16, #compound.dims<M, N @GB>>, %e1: !dataflow.epoch):
// CHECK-GENERIC-NEXT:       %z = "schedule.temporal"(%c1, %e1) <{loops = [#schedule.loop<N = 2>], operandSegmentSizes = array<i32: 1, 0, 1>}> ({
// CHECK-GENERIC-NEXT:       ^bb0(%c2: tensor<4x16xf16, #compound.dims<M, N @GB>>, %e2: !dataflow.epoch):
// CHECK-GENERIC-NEXT:         "schedule.yield"(%c2) : (tensor<4x16xf16, #compound.dims<M, N @GB>>) -> ()
// CHECK-GENERIC-NEXT:       }) : (tensor<4x32xf16, #compound.dims<M, N @GB>>, !dataflow.epoch) -> tensor<4x32xf16, #compound.dims<M, N @GB>>
// CHECK-GENERIC-NEXT:       "schedule.yield"(%z) : (tensor<4x32xf16, #compound.dims<M, N @GB>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x32xf16, #compound.dims<M, N @GB>>, !dataflow.epoch) -> tensor<8x32xf16, #compound.dims<M, N @GB>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8x32xf16, #compound.dims<M, N @GB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT: }) : () -> ()
