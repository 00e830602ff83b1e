// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},lower-to-comet' | filecheck %s

// A scaled product, with a row maximum: temporal nodes at every level, a collective.

!A = tensor<16x8xf16, #compound.dims<M, K @DRAM>>
!A1 = tensor<4x8xf16, #compound.dims<M, K @DRAM>>
!A2 = tensor<4x8xf16, #compound.dims<M, K @GB>>
!A3 = tensor<4x8xf16, #compound.dims<M, K @IB>>
!A4 = tensor<4x2xf16, #compound.dims<M, K @IB>>
!B = tensor<8x32xf16, #compound.dims<K, cols @DRAM>>
!B2 = tensor<8x8xf16, #compound.dims<K, cols @GB>>
!B3 = tensor<8x2xf16, #compound.dims<K, cols @WB>>
!B4 = tensor<2x1xf16, #compound.dims<K, cols @WB>>
!R = tensor<16xf16, #compound.dims<M @DRAM>>
!R1 = tensor<4xf16, #compound.dims<M @DRAM>>
!R2 = tensor<4xf16, #compound.dims<M @GB>>
!R3 = tensor<4xf16, #compound.dims<M @OB>>
!L = tensor<4x8xf16, #compound.dims<M, cols @OB>>
!O = tensor<4x2xf16, #compound.dims<M, cols @OB>>
!T = tensor<4x1xf16, #compound.dims<M, cols @OB>>
!S = tensor<f16, #compound.dims<@OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

// CHECK:      comet.constants {}
// CHECK-NEXT: comet.problem ins ["a", "b"] outs ["m"] instance <M = 16, C = 32, K = 8> {
// CHECK-NEXT:   comet.declare "GEMM" ins ["a", "b"] out "c" dimensions ["M", "C", "K"] tensors <a[M, K], b[K, C], c[M, C] read_write>
// CHECK-NEXT:   comet.declare "SUB" ins ["c"] out "s" dimensions ["M", "C"] tensors <c[M, C], s[M, C] read_write>
// CHECK-NEXT:   comet.declare "MULT" ins ["s"] out "q" dimensions ["M", "C"] tensors <s[M, C], q[M, C] read_write>
// CHECK-NEXT:   comet.declare "ROWMAX" ins ["q"] out "m" dimensions ["M", "C"] tensors <q[M, C], m[M] read_write>
// CHECK-NEXT: }
// CHECK-NEXT: comet.mapping attributes {comet.names = {dimensions = {M = "M", C = "cols", K = "K"}, tensors = {a = "%a of argument", b = "%b of argument", c = "%c of compound.contract", s = "%s of compound.map", q = "%q of compound.map", m = "%m of compound.reduce"}, operations = {GEMM = "compound.contract", SUB = "compound.map", MULT = "compound.map", ROWMAX = "compound.reduce"}}, comet.plan = "by hand"} {
// CHECK-NEXT:   comet.tile temporal permutation "CKM" <
// CHECK-NEXT:     a by GEMM, DRAM -> GB, 16 bits, [M = 4, C = 1, K = 1],
// CHECK-NEXT:     b by GEMM, DRAM -> GB, 16 bits, [M = 4, C = 1, K = 1],
// CHECK-NEXT:     m by ROWMAX, DRAM -> GB, 16 bits, wb_output, [M = 4, C = 1, K = 1]
// CHECK-NEXT:   > attributes {comet.note = "rounds"} {
// CHECK-NEXT:     comet.tile spatial permutation "MCK" <
// CHECK-NEXT:       a by GEMM, DRAM -> GB, 16 bits, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1],
// CHECK-NEXT:       b by GEMM, DRAM -> GB, 16 bits, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1],
// CHECK-NEXT:       m by ROWMAX, DRAM -> GB, 16 bits, wb_output, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1]
// CHECK-NEXT:     > attributes {comet.note = "clusters"} {
// CHECK-NEXT:       comet.tile temporal permutation "MCK" <
// CHECK-NEXT:         a by GEMM, GB -> IB, 16 bits, [M = 1, C = 1, K = 1],
// CHECK-NEXT:         b by GEMM, GB -> WB, 16 bits, [M = 1, C = 1, K = 1],
// CHECK-NEXT:         m by ROWMAX, GB -> OB, 16 bits, wb_output, [M = 1, C = 1, K = 1]
// CHECK-NEXT:       > {
// CHECK-NEXT:         comet.binding sequential
// CHECK-NEXT:         comet.tile spatial permutation "MCK" <
// CHECK-NEXT:           a by GEMM, GB -> IB, 16 bits, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1],
// CHECK-NEXT:           b by GEMM, GB -> WB, 16 bits, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1],
// CHECK-NEXT:           m by ROWMAX, GB -> OB, 16 bits, wb_output, [M = 1, C = 2, K = 1] x [M = 1, C = 2, K = 1]
// CHECK-NEXT:         > {
// CHECK-NEXT:           comet.binding sequential
// CHECK-NEXT:           comet.tile temporal permutation "MCK" <
// CHECK-NEXT:             a by GEMM, IB -> GEMMEngine, 16 bits, [M = 1, C = 2, K = 4],
// CHECK-NEXT:             b by GEMM, WB -> GEMMEngine, 16 bits, [M = 1, C = 2, K = 4],
// CHECK-NEXT:             c by GEMM, OB -> GEMMEngine, 16 bits, rmw, wb_output, [M = 1, C = 2, K = 4]
// CHECK-NEXT:           > {
// CHECK-NEXT:             comet.operation gemm "GEMM" primitive <M = 4, C = 1, K = 2> steps <
// CHECK-NEXT:               a[M = 4, C = 1, K = 2],
// CHECK-NEXT:               b[M = 4, C = 1, K = 2],
// CHECK-NEXT:               c[M = 4, C = 1, K = 2]
// CHECK-NEXT:             > compute <[M = 4], rmw, specd>
// CHECK-NEXT:           }
// CHECK-NEXT:           comet.binding sequential
// CHECK-NEXT:           comet.tile temporal permutation "MCK" <
// CHECK-NEXT:             c by SUB, OB -> SE, 16 bits, [M = 1, C = 1, K = 1],
// CHECK-NEXT:             s by SUB, OB -> SE, 16 bits, wb_output, [M = 1, C = 1, K = 1]
// CHECK-NEXT:           > {
// CHECK-NEXT:             comet.operation add "SUB" primitive <M = 4, C = 2> steps <
// CHECK-NEXT:               c[M = 4, C = 2, K = 8],
// CHECK-NEXT:               s[M = 4, C = 2, K = 8]
// CHECK-NEXT:             >
// CHECK-NEXT:           }
// CHECK:                comet.operation mult "MULT" primitive <M = 4, C = 2> steps <
// CHECK:                comet.operation rowmax "ROWMAX" primitive <M = 4, C = 2> steps <
// CHECK:              comet.collective allreduce "c1" at "GB" in "m" out "m" dimension "C" src ["GB"] dest ["GB"] precision 16 reduction max {comet.note = "exchange"}
// CHECK-NOT:  func.func @f
// CHECK:      func.func private @f__reference
func.func @f(%a : !A, %b : !B) -> !R attributes {comet.plan = "by hand"} {
  %m = schedule.temporal [M = 4] ins(%a, %b : !A, !B) outs(!R) attributes {comet.note = "rounds"} {
  ^bb0(%a1 : !A1, %b1 : !B):
    %m1 = schedule.spatial on @edge [cx: cols = 2, cy: cols = 2] ins(%a1, %b1 : !A1, !B) outs(!R1) combine ["same"] attributes {comet.note = "clusters"} {
    ^bb1(%a2 : !A2, %b2 : !B2):
      %c2 = schedule.spatial on @edge [kx: cols = 2, ky: cols = 2] ins(%a2, %b2 : !A2, !B2) outs(!L) {
      ^bb2(%a3 : !A3, %b3 : !B3):
        %c3 = schedule.temporal [K = 4] ins(%a3, %b3 : !A3, !B3) outs(!O) combine ["add"] {
        ^bb3(%a4 : !A4, %b4 : tensor<2x2xf16, #compound.dims<K, cols @WB>>):
          %c4 = schedule.temporal [cols = 2] ins(%a4, %b4 : !A4, tensor<2x2xf16, #compound.dims<K, cols @WB>>) outs(!O) {
          ^bb4(%a5 : !A4, %b5 : !B4):
            %c = compound.contract %a5, %b5 : !A4, !B4 -> !T
            schedule.yield %c : !T
          }
          schedule.yield %c4 : !O
        }
        schedule.yield %c3 : !O
      }
      %m2 = schedule.spatial on @edge [kx: cols = 2, ky: cols = 2] ins(%c2 : !L) outs(!R2) combine ["max"] {
      ^bb5(%c6 : !O):
        %half = compound.fill 5.000000e-01 : !S
        %s = compound.map sub %c6, %half : !O, !S -> !O
        %q = compound.map mult %s, %s : !O, !O -> !O
        %m = compound.reduce max %q : !O -> !R3
        schedule.yield %m : !R3
      }
      %m5 = collective.all_reduce max %m2 on @edge ["cx", "cy"] from "GB" to "GB" {comet.note = "exchange"} : !R2 -> !R2
      schedule.yield %m5 : !R2
    }
    schedule.yield %m1 : !R1
  }
  func.return %m : !R
}

func.func private @f__reference(%a : !A) -> !A attributes {comet.reference} {
  func.return %a : !A
}

// -----

// Nothing shares a nest: the columns of one node have factors and orders of their own.

// CHECK:      comet.tile temporal permutation "KNM" <
// CHECK-NEXT:   a by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 2, K = 2],
// CHECK-NEXT:   b by GEMM, DRAM -> GB, 16 bits, [M = 2, N = 2, K = 2],
// CHECK-NEXT:   c by GEMM, DRAM -> GB, 16 bits, wb_output, [M = 2, N = 2, K = 2],
// CHECK-NEXT:   c by EXP, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
// CHECK-NEXT:   e by EXP, DRAM -> GB, 16 bits, wb_output, [M = 8, N = 1, K = 1]
// CHECK-NEXT: > {
// CHECK-NEXT:   comet.binding sequential
// CHECK-NEXT:   comet.tile spatial permutation "MNK" <
// CHECK-NEXT:     a by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 1, N = 2, K = 1],
// CHECK:            c by GEMM, GB -> OB, 16 bits, rmw, wb_output, [M = 1, N = 1, K = 1]
// CHECK:            comet.operation gemm "GEMM" primitive <M = 8, N = 2, K = 4> steps <
// CHECK:        comet.tile spatial permutation "MNK" <
// CHECK-NEXT:     c by EXP, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 1, N = 2, K = 1],
// CHECK:            comet.operation exp "EXP" primitive <M = 2, N = 4> steps <
// CHECK-NEXT:         c[M = 2, N = 4, K = 8],

!A = tensor<16x8xf16, #compound.dims<M, K @DRAM>>
!A1 = tensor<8x4xf16, #compound.dims<M, K @DRAM>>
!A2 = tensor<8x4xf16, #compound.dims<M, K @GB>>
!A3 = tensor<8x4xf16, #compound.dims<M, K @IB>>
!B = tensor<8x64xf16, #compound.dims<K, N @DRAM>>
!B1 = tensor<4x32xf16, #compound.dims<K, N @DRAM>>
!B2 = tensor<4x8xf16, #compound.dims<K, N @GB>>
!B3 = tensor<4x2xf16, #compound.dims<K, N @WB>>
!C = tensor<16x64xf16, #compound.dims<M, N @DRAM>>
!C1 = tensor<8x32xf16, #compound.dims<M, N @DRAM>>
!C2 = tensor<8x8xf16, #compound.dims<M, N @GB>>
!C3 = tensor<8x2xf16, #compound.dims<M, N @OB>>
!D1 = tensor<2x64xf16, #compound.dims<M, N @DRAM>>
!D2 = tensor<2x16xf16, #compound.dims<M, N @GB>>
!D3 = tensor<2x4xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !A, %b : !B) -> !C {
  %c = schedule.temporal [M = 2, N = 2, K = 2] ins(%a, %b : !A, !B) outs(!C) combine ["add"] {
  ^bb0(%a1 : !A1, %b1 : !B1):
    %c1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a1, %b1 : !A1, !B1) outs(!C1) {
    ^bb1(%a2 : !A2, %b2 : !B2):
      %c2 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a2, %b2 : !A2, !B2) outs(!C2) {
      ^bb2(%a3 : !A3, %b3 : !B3):
        %c = compound.contract %a3, %b3 : !A3, !B3 -> !C3
        schedule.yield %c : !C3
      }
      schedule.yield %c2 : !C2
    }
    schedule.yield %c1 : !C1
  }
  %h = schedule.temporal [M = 8] ins(%c : !C) outs(!C) {
  ^bb0(%c1 : !D1):
    %e1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%c1 : !D1) outs(!D1) {
    ^bb1(%c2 : !D2):
      %e2 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%c2 : !D2) outs(!D2) {
      ^bb2(%c3 : !D3):
        %e = compound.map exp %c3 : !D3 -> !D3
        schedule.yield %e : !D3
      }
      schedule.yield %e2 : !D2
    }
    schedule.yield %e1 : !D1
  }
  func.return %h : !C
}
