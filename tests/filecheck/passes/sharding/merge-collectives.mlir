// RUN: comet-opt %s -p merge-collectives | filecheck %s

collective.mesh @gpus {rank = 4}
!W = tensor<8x6xf32, #compound.dims<M, N>>
!S = tensor<2x6xf32, #compound.dims<M, N>>
!K = tensor<8x3xf32, #compound.dims<M, K>>
!R = tensor<3x6xf32, #compound.dims<K, N>>
!GK = tensor<8x12xf32, #compound.dims<M, K>>
!GR = tensor<12x6xf32, #compound.dims<K, N>>
// Two gathers are one. Of the three reductions of the residual `three`, and of the two of
// `s`, one is left each: that of the sum.
func.func @chain(%x: !W, %a: !GK, %b: !GR) -> (!W, !W) {
  %y, %w = collective.spmd on @gpus ins(%x, %a, %b : !W, !GK, !GR) sharded [{M = ["rank"]}, {K = ["rank"]}, {K = ["rank"]}] outs(!W, !W) sharded [{M = ["rank"]}, {}] {
  ^bb0(%xl: !S, %al: !K, %bl: !R):
    %g1 = collective.all_gather "M" %xl on @gpus ["rank"] : !S -> !W
    %g2 = collective.all_gather "M" %xl on @gpus ["rank"] : !S -> !W
    %c = compound.contract %al, %bl : !K, !R -> !W
    %t = compound.map mult %g1, %g2 : !W, !W -> !W
    %d = compound.contract %al, %bl : !K, !R -> !W
    %e = compound.contract %al, %bl : !K, !R -> !W
    %cs = collective.reduce_scatter add "M" %c on @gpus ["rank"] : !W -> !S
    %one = compound.map add %xl, %cs : !S, !S -> !S
    %ds = collective.reduce_scatter add "M" %d on @gpus ["rank"] : !W -> !S
    %two = compound.map add %ds, %one : !S, !S -> !S
    %es = collective.reduce_scatter add "M" %e on @gpus ["rank"] : !W -> !S
    %three = compound.map add %two, %es : !S, !S -> !S
    %ca = collective.all_reduce add %c on @gpus ["rank"] : !W -> !W
    %da = collective.all_reduce add %d on @gpus ["rank"] : !W -> !W
    %s = compound.map add %ca, %da : !W, !W -> !W
    %s2 = compound.map max %s, %t : !W, !W -> !W
    collective.yield %three, %s2 : !S, !W
  }
  func.return %y, %w : !W, !W
}

// CHECK-LABEL: func.func @chain
// CHECK:         %g1 = collective.all_gather "M" %xl
// CHECK-NEXT:    %c = compound.contract
// CHECK-NEXT:    %t = compound.map mult %g1, %g1
// CHECK-NEXT:    %d = compound.contract
// CHECK-NEXT:    %e = compound.contract
// CHECK-NEXT:    %d_1 = compound.map add %c, %d
// CHECK-NEXT:    %e_1 = compound.map add %d_1, %e
// CHECK-NEXT:    %es = collective.reduce_scatter add "M" %e_1
// CHECK-NEXT:    %three = compound.map add %xl, %es
// CHECK-NEXT:    %d_2 = compound.map add %c, %d
// CHECK-NEXT:    %da = collective.all_reduce add %d_2
// CHECK-NEXT:    %s2 = compound.map max %da, %t
// CHECK-NEXT:    collective.yield %three, %s2

// Shards of other dimensions, a reduction that has another reader, another function of two
// reductions, and gathers of other values stay.
func.func @others(%a: !GK, %b: !GR) -> (!W, !W, !W) {
  %y, %w, %v = collective.spmd on @gpus ins(%a, %b : !GK, !GR) sharded [{K = ["rank"]}, {K = ["rank"]}] outs(!W, !W, !W) sharded [{}, {}, {}] {
  ^bb0(%al: !K, %bl: !R):
    %c = compound.contract %al, %bl : !K, !R -> !W
    %d = compound.contract %al, %bl : !K, !R -> !W
    %e = compound.contract %al, %bl : !K, !R -> !W
    %ca = collective.all_reduce add %c on @gpus ["rank"] : !W -> !W
    %da = collective.all_reduce add %d on @gpus ["rank"] : !W -> !W
    %ea = collective.all_reduce add %e on @gpus ["rank"] : !W -> !W
    %s = compound.map add %ca, %da : !W, !W -> !W
    %t = compound.map max %ca, %ea : !W, !W -> !W
    %m = collective.reduce_scatter add "M" %c on @gpus ["rank"] : !W -> !S
    %n = collective.reduce_scatter add "N" %d on @gpus ["rank"] : !W -> tensor<8x2xf32, #compound.dims<M, N>>
    %mw = collective.all_gather "M" %m on @gpus ["rank"] : !S -> !W
    %nw = collective.all_gather "N" %n on @gpus ["rank"] : tensor<8x2xf32, #compound.dims<M, N>> -> !W
    %u = compound.map add %mw, %nw : !W, !W -> !W
    collective.yield %s, %t, %u : !W, !W, !W
  }
  func.return %y, %w, %v : !W, !W, !W
}

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: collective.all_reduce
// CHECK:         compound.map add %ca, %da
// CHECK-NEXT:    compound.map max %ca, %ea
// CHECK-NEXT:    collective.reduce_scatter add "M" %c
// CHECK-NEXT:    collective.reduce_scatter add "N" %d
// CHECK-NEXT:    collective.all_gather "M" %m
// CHECK-NEXT:    collective.all_gather "N" %n
