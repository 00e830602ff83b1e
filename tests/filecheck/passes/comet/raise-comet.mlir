// RUN: comet-opt %s -p raise-comet | filecheck %s

comet.problem ins ["A"] outs ["D"] instance <M = 4, N = 8> {
  comet.declare "TOP" ins ["A"] out "D" dimensions ["M", "N"]
    tensors <A[M, N], D[M] read_write>
}
comet.constants {}
comet.mapping {
  comet.tile temporal permutation "NM" <
    A by TOP, DRAM -> GB, 16 bits, [M = 2, N = 1],
    D by TOP, DRAM -> GB, 16 bits, [M = 2, N = 1]
  > {
    comet.tile spatial permutation "NM" <
      A by TOP, DRAM -> GB, 16 bits, [M = 2, N = 1],
      D by TOP, DRAM -> GB, 16 bits, [M = 2, N = 1]
    > {
      comet.tile temporal permutation "NM" <
        A by TOP, GB -> SE, 16 bits, [M = 1, N = 4],
        D by TOP, GB -> SE, 16 bits, [M = 1, N = 4]
      > {
        comet.operation rowmax "TOP" primitive <M = 1, N = 2> steps <
          A[M = 1, N = 2],
          D[M = 1, N = 2]
        >
      }
    }
  }
}

// CHECK:       collective.mesh @instances {x0 = 2}
// CHECK-NEXT:  func.func @mapping(%A: tensor<4x8xf16, #compound.dims<M, N @DRAM>>) -> tensor<4xf16, #compound.dims<M @DRAM>> {
// CHECK-NEXT:    %D = schedule.temporal [M = 2] ins(%A : tensor<4x8xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4xf16, #compound.dims<M @DRAM>>) {
// CHECK-NEXT:    ^bb0(%A_1: tensor<2x8xf16, #compound.dims<M, N @DRAM>>):
// CHECK-NEXT:      %D_1 = schedule.spatial on @instances [x0: M = 2] ins(%A_1 : tensor<2x8xf16, #compound.dims<M, N @DRAM>>) outs(tensor<2xf16, #compound.dims<M @DRAM>>) {
// CHECK-NEXT:      ^bb0(%A_2: tensor<1x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:        %D_2 = schedule.temporal [N = 4] ins(%A_2 : tensor<1x8xf16, #compound.dims<M, N @GB>>) outs(tensor<1xf16, #compound.dims<M @GB>>) combine ["max"] {
// CHECK-NEXT:        ^bb0(%A_3: tensor<1x2xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:          %D_3 = compound.reduce max %A_3 : tensor<1x2xf16, #compound.dims<M, N @GB>> -> tensor<1xf16, #compound.dims<M @GB>>
// CHECK-NEXT:          schedule.yield %D_3 : tensor<1xf16, #compound.dims<M @GB>>
// CHECK:       func.func private @mapping__reference
// CHECK-NEXT:    %D = compound.reduce max %A
