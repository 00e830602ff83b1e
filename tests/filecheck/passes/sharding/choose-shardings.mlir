// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},choose-shardings' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},choose-shardings,insert-collectives' | filecheck %s --check-prefix=MOVED

!TM = tensor<8x4096xbf16, #compound.dims<T, M>>
!MH = tensor<4096x16384xbf16, #compound.dims<M, H>>
!TH = tensor<8x16384xbf16, #compound.dims<T, H>>
!HM = tensor<16384x4096xbf16, #compound.dims<H, M>>

// Ranks share the columns of the first weight and the rows of the second one: the sums
// of the second product are added up, which takes less than to load whole weights.
func.func @mlp(%x: !TM, %up: !MH, %down: !HM) -> !TM {
  %h = compound.contract %x, %up : !TM, !MH -> !TH
  %a = compound.map tanh %h : !TH -> !TH
  %d = compound.contract %a, %down : !TH, !HM -> !TM
  %z = compound.map add %x, %d : !TM, !TM -> !TM
  func.return %z : !TM
}

// CHECK-LABEL: func.func @mlp
// CHECK:         compound.contract %x, %up {collective.shard = {H = ["rank"]}}

// MOVED-LABEL: func.func @mlp
// MOVED:         sharded [{}, {H = ["rank"]}, {H = ["rank"]}]
// MOVED:         %d_1 = collective.all_reduce add %d

// What the function says stays: each rank has some tokens, before and after.
func.func @stated(%x: !TM {collective.shard = {T = ["rank"]}}, %up: !MH, %down: !HM) -> (!TM {collective.shard = {T = ["rank"]}}) {
  %h = compound.contract %x, %up {collective.shard = {T = ["rank"]}} : !TM, !MH -> !TH
  %a = compound.map tanh %h : !TH -> !TH
  %d = compound.contract %a, %down : !TH, !HM -> !TM
  %z = compound.map add %x, %d : !TM, !TM -> !TM
  func.return %z : !TM
}

// CHECK-LABEL: func.func @stated
// CHECK:         compound.contract %x, %up {collective.shard = {T = ["rank"]}}
// CHECK:         compound.map add %x, %d {collective.shard = {T = ["rank"]}}
