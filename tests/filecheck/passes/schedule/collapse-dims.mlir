// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,collapse-dims' --split-input-file | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,collapse-dims{dims=none}' --split-input-file | filecheck %s --check-prefix NONE
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,collapse-dims{dims=all}' --split-input-file | filecheck %s --check-prefix ALL

// Rows of sequences of 77 tokens, and columns of heads of 64 elements. What reads the
// result sees all dimensions.

!x = tensor<32x77x512xf16, #compound.dims<B, S, K>>
!w = tensor<12x64x512xf16, #compound.dims<H, D, K>>
!y = tensor<32x77x12x64xf32, #compound.dims<B, S, H, D>>

func.func @heads(%x: !x, %w: !w) -> !y {
  %y = compound.contract %x, %w : !x, !w -> !y
  func.return %y : !y
}

// CHECK:       func.func @heads
// CHECK-SAME:    comet.collapsed = "y: B S, H D"
// CHECK:         %[[X:.*]] = compound.rename %x merge "B"
// CHECK-SAME:      tensor<2464x512xf16, #compound.dims<BS, K @HBM>>
// CHECK:         %[[W:.*]] = compound.rename %w merge "H"
// CHECK-SAME:      tensor<768x512xf16, #compound.dims<HD, K @HBM>>
// CHECK:         %[[Y:.*]] = schedule.spatial @y on grid [g0: BS = 1, g1: HD = 1] ins(%[[X]], %[[W]]
// CHECK:         compound.contract %{{.*}} -> tensor<2464x768xf32, #compound.dims<BS, HD @REG>>
// CHECK:         %[[S:.*]] = compound.rename %[[Y]] split "{{BS|HD}}"
// CHECK:         %[[V:.*]] = compound.rename %[[S]] split "{{BS|HD}}"
// CHECK:         func.return %[[V]]

// NONE-LABEL:  func.func @heads
// NONE-SAME:     comet.collapsed = "none"
// NONE:          schedule.spatial @y on grid [g0: B = 1, g1: S = 1, g2: H = 1, g3: D = 1]

// -----

// A gradient of weights sums over the sequences and their tokens: the two loops are one.

!x = tensor<8x77x512xf16, #compound.dims<B, S, K>>
!g = tensor<8x77x512xf16, #compound.dims<B, S, N>>
!w = tensor<512x512xf32, #compound.dims<K, N>>

func.func @gradient(%x: !x, %g: !g) -> !w {
  %w = compound.contract %x, %g : !x, !g -> !w
  func.return %w : !w
}

// CHECK:       func.func @gradient
// CHECK-SAME:    comet.collapsed = "w: B S"
// CHECK:         schedule.spatial @w on grid [g0: K = 1, g1: N = 1]
// CHECK:         schedule.temporal @w_bs [BS = 1]
// CHECK-NOT:     schedule.temporal

// -----

// An elementwise kernel has one dimension. In the product B and R are dimensions of both
// operands: programs take one element of them, and have no larger blocks if they are one.

!q = tensor<4x3x64x64xf16, #compound.dims<B, R, M, D>>
!s = tensor<4x3x64x64xf32, #compound.dims<B, R, M, N>>
!k = tensor<4x3x64x64xf16, #compound.dims<B, R, N, D>>
!e = tensor<4x3x64x64xf32, #compound.dims<B, R, M, N>>

func.func @scores(%q: !q, %k: !k) -> !e {
  %s = compound.contract %q, %k : !q, !k -> !s
  %e = compound.map exp %s : !s -> !e
  func.return %e : !e
}

// CHECK:       func.func @scores
// CHECK-SAME:    comet.collapsed = "e: B R M N"
// CHECK:         schedule.spatial @s on grid [g0: B = 1, g1: R = 1, g2: M = 1, g3: N = 1]
// CHECK:         compound.map exp %{{.*}} -> tensor<49152xf32, #compound.dims<BRMN @REG>>
// ALL-LABEL:   func.func @scores
// ALL-SAME:      comet.collapsed = "s: B R; e: B R M N"
// ALL:           %[[S:.*]] = schedule.spatial @s on grid [g0: BR = 1

// -----

// A mask compares positions along S, and a slice has rows with gaps: these stay.

!x = tensor<5x7x24xf32, #compound.dims<B, S, K>>
!t = tensor<5x7x8xf32, #compound.dims<B, S, K>>
!p = tensor<7xf32, #compound.dims<S>>

func.func @kept(%x: !x) -> (!x, !t) {
  %p = compound.index : !p
  %y = compound.map add %x, %p : !x, !p -> !x
  %t = compound.slice %x "K" [8, 8] : !x -> !t
  %z = compound.map exp %t : !t -> !t
  func.return %y, %z : !x, !t
}

// ALL-LABEL:   func.func @kept
// ALL-SAME:      comet.collapsed = "none"
