// RUN: comet-opt %s -p propagate-shardings | filecheck %s
// RUN: comet-opt %s -p propagate-shardings,insert-collectives | filecheck %s --check-prefix=MOVED

collective.mesh @gpus {rank = 4}

!TM = tensor<8x16xf32, #compound.dims<T, M>>
!MH = tensor<16x24xf32, #compound.dims<M, H>>
!TH = tensor<8x24xf32, #compound.dims<T, H>>
!HM = tensor<24x16xf32, #compound.dims<H, M>>

// Tokens are gathered for the product with columns, as they are smaller than weights; the
// sum over H, which both operands share, is scattered to tokens.
func.func @mlp(%x: !TM {collective.shard = {T = ["rank"]}}, %up: !MH {collective.shard = {H = ["rank"]}}, %down: !HM {collective.shard = {H = ["rank"]}}) -> (!TM {collective.shard = {T = ["rank"]}}) {
  %h = compound.contract %x, %up : !TM, !MH -> !TH
  %a = compound.map tanh %h : !TH -> !TH
  %d = compound.contract %a, %down : !TH, !HM -> !TM
  %z = compound.map add %x, %d : !TM, !TM -> !TM
  func.return %z : !TM
}

// CHECK-LABEL: func.func @mlp
// CHECK:         compound.contract %x, %up {collective.shard = {H = ["rank"]}}
// CHECK-NEXT:    compound.map tanh %h {collective.shard = {H = ["rank"]}}
// CHECK-NEXT:    compound.contract %a, %down {collective.shard = {H = ["rank"]}}
// CHECK-NEXT:    compound.map add %x, %d {collective.shard = {T = ["rank"]}}

// MOVED-LABEL: func.func @mlp
// MOVED:         %x_2 = collective.all_gather "T" %x_1
// MOVED-NEXT:    %h = compound.contract %x_2, %up_1
// MOVED-NEXT:    %a = compound.map tanh %h
// MOVED-NEXT:    %d = compound.contract %a, %down_1
// MOVED-NEXT:    %d_1 = collective.reduce_scatter add "T" %d
// MOVED-NEXT:    compound.map add %x_1, %d_1

// What is computed from whole arguments is computed in the shards that readers want.
func.func @backwards(%a: !TM, %b: !MH) -> (!TH {collective.shard = {T = ["rank"]}}) {
  %c = compound.contract %a, %b : !TM, !MH -> !TH
  %m = compound.reduce max %c : !TH -> tensor<8xf32, #compound.dims<T>>
  %s = compound.map sub %c, %m : !TH, tensor<8xf32, #compound.dims<T>> -> !TH
  func.return %s : !TH
}

// CHECK-LABEL: func.func @backwards
// CHECK:         compound.contract %a, %b {collective.shard = {T = ["rank"]}}
// CHECK-NEXT:    compound.reduce max %c {collective.shard = {T = ["rank"]}}
// CHECK-NEXT:    compound.map sub %c, %m {collective.shard = {T = ["rank"]}}

// A summed dimension that only one operand is split in is not split; a sharding that an
// op has stays, and what no rank shares is whole.
func.func @gathered(%a: !TM {collective.shard = {M = ["rank"]}}, %b: !MH, %c: !TM) -> (!TH {collective.shard = {}}, !TM {collective.shard = {T = ["rank"]}}, !TM {collective.shard = {}}) {
  %d = compound.contract %a, %b : !TM, !MH -> !TH
  %e = compound.map exp %a {collective.shard = {T = ["rank"]}} : !TM -> !TM
  %f = compound.map exp %c : !TM -> !TM
  func.return %d, %e, %f : !TH, !TM, !TM
}

// CHECK-LABEL: func.func @gathered
// CHECK:         compound.contract %a, %b {collective.shard = {}}
// CHECK-NEXT:    compound.map exp %a {collective.shard = {T = ["rank"]}}
// CHECK-NEXT:    compound.map exp %c {collective.shard = {}}

// A view shows shards of what it is a view of: here of heads, which parts are.
func.func @heads(%x: !TH {collective.shard = {H = ["rank"]}}) -> (tensor<8x8xf32, #compound.dims<T, H>> {collective.shard = {H = ["rank"]}}) {
  %v = compound.rename %x split "H" : !TH -> tensor<8x8x3xf32, #compound.dims<T, H, E>>
  %m = compound.reduce max %v : tensor<8x8x3xf32, #compound.dims<T, H, E>> -> tensor<8x8xf32, #compound.dims<T, H>>
  func.return %m : tensor<8x8xf32, #compound.dims<T, H>>
}

// CHECK-LABEL: func.func @heads
// CHECK:         compound.reduce max %v {collective.shard = {H = ["rank"]}}

// A result that has no sharding stays as it is computed.
func.func @open(%x: !TM {collective.shard = {T = ["rank"]}}) -> !TM {
  %e = compound.map exp %x : !TM -> !TM
  func.return %e : !TM
}

// CHECK-LABEL: func.func @open
// CHECK:         compound.map exp %x {collective.shard = {T = ["rank"]}}

// A function that says nothing is left alone.
func.func @silent(%x: !TM) -> !TM {
  %e = compound.map exp %x : !TM -> !TM
  func.return %e : !TM
}

// CHECK-LABEL: func.func @silent
// CHECK:         compound.map exp %x :

// Shards of a part that `split` makes are no views of shards: each rank has the whole value before it.

func.func @inner_part(%a: tensor<16x3xf32, #compound.dims<N, K>>) -> (tensor<16x3x2x8xf32, #compound.dims<N, K, P, Q>> {collective.shard = {Q = ["rank"]}}) {
  %i = compound.index : tensor<16xf32, #compound.dims<M>>
  %parts = compound.rename %i split "M" : tensor<16xf32, #compound.dims<M>> -> tensor<2x8xf32, #compound.dims<P, Q>>
  %r = compound.contract %a, %parts : tensor<16x3xf32, #compound.dims<N, K>>, tensor<2x8xf32, #compound.dims<P, Q>> -> tensor<16x3x2x8xf32, #compound.dims<N, K, P, Q>>
  func.return %r : tensor<16x3x2x8xf32, #compound.dims<N, K, P, Q>>
}

// CHECK-LABEL: func.func @inner_part
// CHECK: compound.contract %a, %parts {collective.shard = {}}
