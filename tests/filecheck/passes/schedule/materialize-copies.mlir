// RUN: comet-opt %s -p materialize-copies | filecheck %s
// RUN: comet-opt %s -p materialize-copies,materialize-copies | filecheck %s

!a = tensor<32x64xf16, #compound.dims<M, K @HBM>>
!as = tensor<16x16xf16, #compound.dims<M, K @SMEM>>
!am = tensor<16x64xf16, #compound.dims<M, K @HBM>>
!top = tensor<16xf16, #compound.dims<M @REG>>
!sum = tensor<32xf16, #compound.dims<M @HBM>>
!part = tensor<16x16xf16, #compound.dims<M, K @REG>>

// What a node loads is copied at the start of its body, what it combines after it. Only maxima
// want other elements than zeros beyond the end of a tile.

func.func @loads(%a: !a, %b: !a) -> (!sum, !sum) {
  %r:2 = schedule.spatial on grid [g0: M = 2] ins(%a, %b : !a, !a) outs(!sum, !sum) {
  ^bb0(%a1: !am, %b1: !am):
    %r1:2 = schedule.temporal [K = 4] ins(%a1, %b1 : !am, !am) outs(!top, !top) combine ["max", "add"] {
    ^bb1(%a2: !as, %b2: !as):
      %x = compound.reduce max %a2 : !as -> !top
      %y = compound.reduce add %b2 : !as -> !top
      schedule.yield %x, %y : !top, !top
    }
    schedule.yield %r1#0, %r1#1 : !top, !top
  }
  func.return %r#0, %r#1 : !sum, !sum
}

// CHECK-LABEL: func.func @loads
// CHECK:         schedule.spatial on grid [g0: M = 2] ins(%a, %b
// CHECK-NEXT:    ^bb0(%a1: {{.*}} @HBM>>, %b1: {{.*}} @HBM>>):
// CHECK-NEXT:      %[[R1:.*]], %[[R2:.*]] = schedule.temporal [K = 4] ins(%a1, %b1
// CHECK-NEXT:      ^bb0(%a2: {{.*}} @HBM>>, %b2: {{.*}} @HBM>>):
// CHECK-NEXT:        %[[A:.*]] = schedule.copy %a2 pad max : {{.*}} -> {{.*}} @SMEM>>
// CHECK-NEXT:        %[[B:.*]] = schedule.copy %b2 : {{.*}} -> {{.*}} @SMEM>>
// CHECK-NEXT:        compound.reduce max %[[A]]
// CHECK-NEXT:        compound.reduce add %[[B]]
// CHECK:           }
// CHECK-NEXT:      %[[S1:.*]] = schedule.copy %[[R1]] : {{.*}} @REG>> -> {{.*}} @HBM>>
// CHECK-NEXT:      %[[S2:.*]] = schedule.copy %[[R2]] : {{.*}} @REG>> -> {{.*}} @HBM>>
// CHECK-NEXT:      schedule.yield %[[S1]], %[[S2]] : {{.*}} @HBM>>

// A loop stores what it lays in its body, and copies after it what it combines.

func.func @stores(%a: !a) -> (!a, !sum) {
  %r:2 = schedule.spatial on grid [g0: M = 2] ins(%a : !a) outs(!a, !sum) {
  ^bb0(%a1: !am):
    %r1:2 = schedule.temporal [K = 4] ins(%a1 : !am) outs(!am, tensor<16xf16, #compound.dims<M @HBM>>) combine ["none", "add"] {
    ^bb1(%a2: !part):
      %y = compound.reduce add %a2 : !part -> !top
      schedule.yield %a2, %y : !part, !top
    }
    schedule.yield %r1#0, %r1#1 : !am, tensor<16xf16, #compound.dims<M @HBM>>
  }
  func.return %r#0, %r#1 : !a, !sum
}

// CHECK-LABEL: func.func @stores
// CHECK:           schedule.temporal [K = 4] ins(%a1 : {{.*}}) outs(tensor<16x64xf16, #compound.dims<M, K @HBM>>, tensor<16xf16, #compound.dims<M @REG>>) combine ["none", "add"] {
// CHECK:             %[[A:.*]] = schedule.copy %a2
// CHECK:             %[[Y:.*]] = compound.reduce add %[[A]]
// CHECK-NEXT:        %[[S:.*]] = schedule.copy %[[A]] : {{.*}} -> {{.*}} @HBM>>
// CHECK-NEXT:        schedule.yield %[[S]], %[[Y]]
// CHECK-NEXT:      }
// CHECK-NEXT:      schedule.copy {{.*}} : tensor<16xf16, #compound.dims<M @REG>> -> tensor<16xf16, #compound.dims<M @HBM>>

// A store between two loops of a node splits it.

func.func @between(%a: !a) -> !sum {
  %r = schedule.spatial on grid [] ins(%a : !a) outs(!sum) {
  ^bb0(%a1: !a):
    %r1 = schedule.temporal [M = 2, K = 4] ins(%a1 : !a) outs(!sum) combine ["add"] {
    ^bb1(%a2: !part):
      %y = compound.reduce add %a2 : !part -> !top
      schedule.yield %y : !top
    }
    schedule.yield %r1 : !sum
  }
  func.return %r : !sum
}

// CHECK-LABEL: func.func @between
// CHECK:         schedule.temporal [M = 2] ins(%a1 : {{.*}}) outs(tensor<32xf16, #compound.dims<M @HBM>>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: {{.*}}):
// CHECK-NEXT:      %[[R:.*]] = schedule.temporal [K = 4] ins(%[[A]] : {{.*}}) outs(tensor<16xf16, #compound.dims<M @REG>>) combine ["add"] {
// CHECK:           }
// CHECK-NEXT:      %[[S:.*]] = schedule.copy %[[R]]
// CHECK-NEXT:      schedule.yield %[[S]]

// A fold goes on from what was copied before it.

!rows = tensor<16xf16, #compound.dims<M @HBM>>
func.func @carries(%a: !a, %zero: !sum) -> !sum {
  %r = schedule.spatial on grid [g0: M = 2] ins(%a, %zero : !a, !sum) outs(!sum) {
  ^bb0(%a1: !am, %zero1: !rows):
    %r1 = schedule.temporal [K = 4] ins(%a1 : !am) iter_args(%zero1 : !rows) outs(!rows) combine ["fold"] {
    ^bb1(%a2: !part, %old: !top):
      %y = compound.reduce add %a2 : !part -> !top
      %z = compound.map add %old, %y : !top, !top -> !top
      schedule.yield %z : !top
    }
    schedule.yield %r1 : !rows
  }
  func.return %r : !sum
}

// CHECK-LABEL: func.func @carries
// CHECK:         %[[ZERO:.*]] = schedule.copy %zero1 : {{.*}} -> {{.*}} @REG>>
// CHECK-NEXT:    %[[R:.*]] = schedule.temporal [K = 4] ins(%a1 : {{.*}}) iter_args(%[[ZERO]] : {{.*}}) outs(tensor<16xf16, #compound.dims<M @REG>>) combine ["fold"] {
// CHECK:         schedule.copy %[[R]] : {{.*}} -> {{.*}} @HBM>>
