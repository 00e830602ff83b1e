// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// CHECK: comet.constants {m = 256 : i64, order = "MNK"}
// CHECK-GENERIC: "comet.constants"() <{values = {m = 256 : i64, order = "MNK"}}>
comet.constants {m = 256 : i64, order = "MNK"}

// CHECK: comet.problem ins ["A", "B"] outs ["C"] instance <M = 256, N = 64, K = 128> {
// CHECK-GENERIC: "comet.problem"() <{ins = ["A", "B"], outs = ["C"], instance = #comet.sizes<M = 256, N = 64, K = 128>}> ({
comet.problem ins ["A", "B"] outs ["C"] instance <M = 256, N = 64, K = 128> {
  // CHECK-NEXT: comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"] tensors <A[M, K], B[K + M, N], C[M, N] read_write>
  // CHECK-GENERIC-NEXT: "comet.declare"() <{operation = "GEMM", ins = ["A", "B"], out = "C", dimensions = ["M", "N", "K"], tensors = #comet.accesses<A[M, K], B[K + M, N], C[M, N] read_write>}>
  comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"]
    tensors <A[M, K], B[K + M, N], C[M, N] read_write>
}

// CHECK: comet.problem ins ["A"] outs ["C"] instance <M = 256, N = 64> padded_from <M = 250> {
// CHECK-GENERIC: true = #comet.sizes<M = 250>
comet.problem ins ["A"] outs ["C"] instance <M = 256, N = 64> padded_from <M = 250> {
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], C[M]>
}

// CHECK: comet.mapping {
comet.mapping {
  // CHECK-NEXT: comet.tile temporal permutation "MNK" <
  // CHECK-NEXT:   A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
  // CHECK-NEXT:   C by "None!", DRAM -> GB, 16 bits, rmw, wb_output, [M = 8, N = 1, K = 1]
  // CHECK-NEXT: > {
  // CHECK-GENERIC: "comet.tile"() <{kind = #comet<tile_kind temporal>, permutation = "MNK", columns = #comet.entries<
  comet.tile temporal permutation "MNK" <
    A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
    C by "None!", DRAM -> GB, 16 bits, rmw, wb_output, [M = 8, N = 1, K = 1]
  > {
    // CHECK-NEXT: comet.binding sequential
    // CHECK-GENERIC: "comet.binding"() <{kind = #comet<binding_kind sequential>}>
    comet.binding sequential
    // CHECK-NEXT: comet.tile spatial permutation "MNK" <
    // CHECK-NEXT:   A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 2, N = 1, K = 1]
    // CHECK-NEXT: > attributes {note = "two rows"} {
    comet.tile spatial permutation "MNK" <
      A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 2, N = 1, K = 1]
    > attributes {note = "two rows"} {
      // CHECK-NEXT: comet.operation gemm "GEMM" primitive <M = 1, N = 16, K = 16> steps <
      // CHECK-NEXT:   A[M = 1, N = 16, K = 16],
      // CHECK-NEXT:   C[M = 1, N = 16, K = 16]
      // CHECK-NEXT: > compute <[M = 1], rmw, specd> scale {A = "a"}
      comet.operation gemm "GEMM" primitive <M = 1, N = 16, K = 16> steps <
        A[M = 1, N = 16, K = 16],
        C[M = 1, N = 16, K = 16]
      > compute <[M = 1], rmw, specd> scale {A = "a"}
    }
    // CHECK: comet.binding pipeline
    comet.binding pipeline
    // CHECK-NEXT: comet.collective allreduce "c1" at "GB" in "R" out "R" dimension "N" src ["GB"] dest ["GB"] precision 16 reduction max spatial_factor 4 wb_output
    comet.collective allreduce "c1" at "GB" in "R" out "R" dimension "N"
      src ["GB"] dest ["GB"] precision 16 reduction max spatial_factor 4 wb_output
    // CHECK-NEXT: comet.collective gather "c2" at "GB" in "R" out "S" src ["GB"] dest ["GB"] precision 8
    comet.collective gather "c2" at "GB" in "R" out "S" src ["GB"] dest ["GB"] precision 8
  }
}
