// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' -t comet | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' -t comet | comet-opt -f comet | filecheck %s --check-prefix=AGAIN
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' -t 'comet{dir="%t"}' | filecheck %s --check-prefix=SILENT --allow-empty
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' -t 'comet{dir="%t"}' 2>&1 | filecheck %s --check-prefix=WROTE
// RUN: filecheck %s --input-file=%t/mapping.yaml --check-prefix=FILE

// CHECK:      //--- arch.yaml
// CHECK-NEXT: ComputeTiles:
// CHECK-NEXT: - name: SystolicArray
// CHECK:      //--- problem.yaml
// CHECK-NEXT: problem:
// CHECK-NEXT:   io:
// CHECK-NEXT:     ins: A, B
// CHECK-NEXT:     outs: C
// CHECK-NEXT:   dimensions: [M, N, K]
// CHECK-NEXT:   instance:
// CHECK-NEXT:     M: 256
// CHECK-NEXT:     N: 64
// CHECK-NEXT:     K: 128
// CHECK-NEXT:   operations:
// CHECK-NEXT:     - name: GEMM
// CHECK-NEXT:       ins: A, B
// CHECK-NEXT:       out: C
// CHECK-NEXT:       dimensions: [M, N, K]
// CHECK-NEXT:       tensors:
// CHECK-NEXT:         - name: A
// CHECK-NEXT:           projection: {{\[\[\[M\]\], \[\[K\]\]\]}}
// CHECK-NEXT:         - name: B
// CHECK-NEXT:           projection: {{\[\[\[K\], \[M\]\], \[\[N\]\]\]}}
// CHECK-NEXT:         - name: C
// CHECK-NEXT:           projection: {{\[\[\[M\]\], \[\[N\]\]\]}}
// CHECK-NEXT:           read-write: true
// CHECK:      //--- mapping.yaml
// CHECK-NEXT: mapping:
// CHECK-NEXT:   node_type: DataMovement_Tile
// CHECK-NEXT:   type: temporal
// CHECK-NEXT:   tensors: [A, C]
// CHECK-NEXT:   tag: [GEMM, GEMM]
// CHECK-NEXT:   target: [DRAM, DRAM]
// CHECK-NEXT:   child: [GB, GB]
// CHECK-NEXT:   precision: [16, 8]
// CHECK-NEXT:   rmw: [false, true]
// CHECK-NEXT:   wb_output: [false, true]
// CHECK-NEXT:   factors:
// CHECK-NEXT:     - M=[8,8] N=[1,2] K=[1,1]
// CHECK-NEXT:   permutation: MNK
// CHECK-NEXT:   subtree:
// CHECK-NEXT:     - node_type: inter_tile_binding
// CHECK-NEXT:       binding: sequential
// CHECK-NEXT:     - node_type: DataMovement_Tile
// CHECK-NEXT:       type: spatial
// CHECK:            factors:
// CHECK-NEXT:         - M=[1] N=[2] K=[1]
// CHECK-NEXT:         - M=[2] N=[1] K=[1]
// CHECK:              - node_type: Operation
// CHECK-NEXT:           type: gemm
// CHECK-NEXT:           name: GEMM
// CHECK-NEXT:           tensors: [A]
// CHECK-NEXT:           TilePrimitive: M=1 N=16
// CHECK-NEXT:           TileSteps:
// CHECK-NEXT:             A: M=1 N=16 K=4
// CHECK-NEXT:           compute_attributes:
// CHECK-NEXT:             reduction_dimensions: [M]
// CHECK-NEXT:             reduction_factors: [1]
// CHECK-NEXT:             rmw: true
// CHECK-NEXT:             specd: false
// CHECK-NEXT:           Scale:
// CHECK-NEXT:             A: a_bits
// CHECK-NEXT:     - node_type: CollectiveOperation
// CHECK-NEXT:       type: allreduce
// CHECK-NEXT:       tag: c1
// CHECK-NEXT:       target: GB
// CHECK-NEXT:       child: GB
// CHECK-NEXT:       src: [GB]
// CHECK-NEXT:       dest: [GB]
// CHECK-NEXT:       in_tensor: R
// CHECK-NEXT:       out_tensor: R
// CHECK-NEXT:       precision: 16
// CHECK-NEXT:       wb_output: false
// CHECK-NEXT:       dimension: N
// CHECK-NEXT:       reduction_op: max
// CHECK-NEXT:       spatial_factor: 2
// CHECK-NEXT: //--- constants.yaml
// CHECK-NEXT: const:
// CHECK-NEXT:   m: 256
// CHECK-NEXT:   order: MNK
// CHECK-NEXT:   flag: "no"

// WROTE:      wrote arch.yaml, problem.yaml, mapping.yaml, constants.yaml into {{.*}}
// WROTE-NOT: {{.+}}

// AGAIN:      arch.system @arch {
// AGAIN:      comet.constants {m = 256 : i64, order = "MNK", flag = "no"}
// AGAIN-NEXT: comet.problem ins ["A", "B"] outs ["C"] instance <M = 256, N = 64, K = 128> {
// AGAIN-NEXT:   comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"] tensors <A[M, K], B[K + M, N], C[M, N] read_write>
// AGAIN-NEXT: }
// AGAIN-NEXT: comet.mapping {
// AGAIN-NEXT:   comet.tile temporal permutation "MNK" <
// AGAIN-NEXT:     A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
// AGAIN-NEXT:     C by GEMM, DRAM -> GB, 8 bits, rmw, wb_output, [M = 8, N = 2, K = 1]
// AGAIN-NEXT:   > {
// AGAIN-NEXT:     comet.binding sequential
// AGAIN-NEXT:     comet.tile spatial permutation "MNK" <
// AGAIN-NEXT:       A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 2, N = 1, K = 1]
// AGAIN-NEXT:     > {
// AGAIN-NEXT:       comet.operation gemm "GEMM" primitive <M = 1, N = 16> steps <
// AGAIN-NEXT:         A[M = 1, N = 16, K = 4]
// AGAIN-NEXT:       > compute <[M = 1], rmw> scale {A = "a_bits"}
// AGAIN-NEXT:     }
// AGAIN-NEXT:     comet.collective allreduce "c1" at "GB" in "R" out "R" dimension "N" src ["GB"] dest ["GB"] precision 16 reduction max spatial_factor 2

// SILENT-NOT: {{.}}

// FILE: mapping:

comet.constants {m = 256 : i64, order = "MNK", flag = "no"}
comet.problem ins ["A", "B"] outs ["C"] instance <M = 256, N = 64, K = 128> {
  comet.declare "GEMM" ins ["A", "B"] out "C" dimensions ["M", "N", "K"]
    tensors <A[M, K], B[K + M, N], C[M, N] read_write>
}
comet.mapping {
  comet.tile temporal permutation "MNK" <
    A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
    C by GEMM, DRAM -> GB, 8 bits, rmw, wb_output, [M = 8, N = 2, K = 1]
  > {
    comet.binding sequential
    comet.tile spatial permutation "MNK" <
      A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 2, K = 1] x [M = 2, N = 1, K = 1]
    > {
      comet.operation gemm "GEMM" primitive <M = 1, N = 16> steps <
        A[M = 1, N = 16, K = 4]
      > compute <[M = 1], rmw> scale {A = "a_bits"}
    }
    comet.collective allreduce "c1" at "GB" in "R" out "R" dimension "N"
      src ["GB"] dest ["GB"] precision 16 reduction max spatial_factor 2
  }
}
