// RUN: comet-opt %s -p scale-maxima | filecheck %s

!x = tensor<16x32xf32, #compound.dims<M, N @HBM>>
!xt = tensor<16x32xf32, #compound.dims<M, N @REG>>
!v = tensor<16x32xi1, #compound.dims<M, N @HBM>>
!vt = tensor<16x32xi1, #compound.dims<M, N @REG>>
!m = tensor<16xf32, #compound.dims<M @REG>>
!one = tensor<f32, #compound.dims<>>

// The difference alone reads the product: it is one instruction with it.

func.func @scores(%x: !x) -> !x {
  %y = schedule.spatial on grid [g0: M = 1] ins(%x : !x) outs(!x) {
  ^bb0(%x1: !xt):
    %k = compound.fill 0.125 : !one
    %p = compound.map mult %x1, %k : !xt, !one -> !xt
    %m = compound.reduce max %p : !xt -> !m
    %s = compound.map sub %p, %m : !xt, !m -> !xt
    schedule.yield %s : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @scores
// CHECK:         %p = compound.map mult %x{{.*}}, %k
// CHECK-NEXT:    %[[RAW:.*]] = compound.reduce max %x
// CHECK-NEXT:    %[[TOP:.*]] = compound.map mult %[[RAW]], %k
// CHECK-NEXT:    %s = compound.map sub %p, %[[TOP]]

// What is hidden is divided by the scale, or is the lowest finite number.

func.func @hidden(%x: !x, %v: !v) -> !x {
  %y = schedule.spatial on grid [g0: M = 1] ins(%x, %v : !x, !v) outs(!x) {
  ^bb0(%x1: !xt, %v1: !vt):
    %k = compound.fill 0.125 : !one
    %low = compound.fill -2.0e+38 : !one
    %p = compound.map mult %x1, %k : !xt, !one -> !xt
    %h = compound.map select %v1, %p, %low : !vt, !xt, !one -> !xt
    %m = compound.reduce max %h : !xt -> !m
    %s = compound.map sub %h, %m : !xt, !m -> !xt
    schedule.yield %s : !xt
  }
  func.return %y : !x
}

// CHECK-LABEL: func.func @hidden
// CHECK:         %k = compound.fill 1.250000e-01
// CHECK-NEXT:    %[[LOW:.*]] = compound.fill -3.4028234663852886e+38
// CHECK-NEXT:    %h = compound.map select %v{{.*}}, %x{{.*}}, %[[LOW]]
// CHECK-NEXT:    %p = compound.map mult %h, %k
// CHECK-NEXT:    %[[RAW:.*]] = compound.reduce max %h
// CHECK-NEXT:    %[[TOP:.*]] = compound.map mult %[[RAW]], %k
// CHECK-NEXT:    %s = compound.map sub %p, %[[TOP]]

// A negative scale, and a product that others read.

func.func @others(%x: !x) -> (!x, !x) {
  %y, %z = schedule.spatial on grid [g0: M = 1] ins(%x : !x) outs(!x, !x) {
  ^bb0(%x1: !xt):
    %k = compound.fill -1.0 : !one
    %p = compound.map mult %x1, %k : !xt, !one -> !xt
    %m = compound.reduce max %p : !xt -> !m
    %s = compound.map sub %p, %m : !xt, !m -> !xt
    %two = compound.fill 2.0 : !one
    %q = compound.map mult %x1, %two : !xt, !one -> !xt
    %n = compound.reduce max %q : !xt -> !m
    %t = compound.map mult %q, %n : !xt, !m -> !xt
    schedule.yield %s, %t : !xt, !xt
  }
  func.return %y, %z : !x, !x
}

// CHECK-LABEL: func.func @others
// CHECK:         %m = compound.reduce max %p
// CHECK-NEXT:    %s = compound.map sub %p, %m
// CHECK:         %n = compound.reduce max %q
// CHECK-NEXT:    %t = compound.map mult %q, %n
