// RUN: comet-opt %s -p materialize-copies,pad-blocks | filecheck %s
// RUN: comet-opt %s -p outline-kernels,pad-blocks,lower-to-triton | filecheck %s --check-prefix TRITON

!x = tensor<6x40xf32, #compound.dims<M, N @HBM>>
!m = tensor<6xf32, #compound.dims<M @HBM>>
!xr = tensor<3x40xf32, #compound.dims<M, N @HBM>>
!xt = tensor<3x16xf32, #compound.dims<M, N @REG>>
!mt = tensor<3xf32, #compound.dims<M @REG>>

// A tile becomes the smallest power of two that holds it. What stays in device memory has no block.

func.func @rowsum(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!m) {
  ^bb0(%x1: !xr):
    %sum1 = schedule.temporal [N = 3] ins(%x1 : !xr) outs(!mt) combine ["add"] {
    ^bb1(%x2: !xt):
      %part = compound.reduce add %x2 : !xt -> !mt
      schedule.yield %part : !mt
    }
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK-LABEL: func.func @rowsum
// CHECK:         schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 4, N: 16 -> 16> ins(

// TRITON-LABEL: tl.kernel @rowsum_kernel({{.*}}%BLOCK_M: !tl.constexpr<4>, %BLOCK_N: !tl.constexpr<16>)

// No extent of a dot is below 16, and a vector becomes the only row of a matrix.

!q = tensor<1x64xf16, #compound.dims<M, D @HBM>>
!k = tensor<32x64xf16, #compound.dims<N, D @HBM>>
!s = tensor<1x32xf32, #compound.dims<M, N @HBM>>
!kt = tensor<8x64xf16, #compound.dims<N, D @HBM>>
!st = tensor<1x8xf32, #compound.dims<M, N @HBM>>
!q1 = tensor<1x64xf16, #compound.dims<M, D @SMEM>>
!k1 = tensor<8x64xf16, #compound.dims<N, D @SMEM>>
!s1 = tensor<1x8xf32, #compound.dims<M, N @REG>>

func.func @scores(%q: !q, %k: !k) -> !s {
  %s = schedule.spatial on grid [g0: N = 4] ins(%q, %k : !q, !k) outs(!s) {
  ^bb0(%q1: !q1, %k1: !k1):
    %s1 = compound.contract %q1, %k1 : !q1, !k1 -> !s1
    schedule.yield %s1 : !s1
  }
  func.return %s : !s
}

// CHECK-LABEL: func.func @scores
// CHECK:         blocks <M: 1 -> 16, D: 64 -> 64, N: 8 -> 16>

// TRITON-LABEL: tl.kernel @scores_kernel
// TRITON:         tl.dot

// Tiles of f32 stay vectors: their products are computed one by one.

!qf = tensor<1x64xf32, #compound.dims<M, D @HBM>>
!kf = tensor<32x64xf32, #compound.dims<N, D @HBM>>
!q1f = tensor<1x64xf32, #compound.dims<M, D @SMEM>>
!k1f = tensor<8x64xf32, #compound.dims<N, D @SMEM>>

func.func @single(%q: !qf, %k: !kf) -> !s {
  %s = schedule.spatial on grid [g0: N = 4] ins(%q, %k : !qf, !kf) outs(!s) {
  ^bb0(%q1: !q1f, %k1: !k1f):
    %s1 = compound.contract %q1, %k1 : !q1f, !k1f -> !s1
    schedule.yield %s1 : !s1
  }
  func.return %s : !s
}

// CHECK-LABEL: func.func @single
// CHECK:         blocks <M: 1 -> 1, D: 64 -> 64, N: 8 -> 8>

// TRITON-LABEL: tl.kernel @single_kernel
// TRITON-NOT:     tl.dot
// TRITON:         tl.reduce sum

// Blocks that are written already stay, and the kernel has them.

func.func @asked_for(%x: !x) -> !m {
  %sum = schedule.spatial on grid [g0: M = 2] blocks <M: 3 -> 8, N: 40 -> 64> ins(%x : !x) outs(!m) {
  ^bb0(%x1: tensor<3x40xf32, #compound.dims<M, N @REG>>):
    %sum1 = compound.reduce add %x1 : tensor<3x40xf32, #compound.dims<M, N @REG>> -> !mt
    schedule.yield %sum1 : !mt
  }
  func.return %sum : !m
}

// CHECK-LABEL: func.func @asked_for
// CHECK:         blocks <M: 3 -> 8, N: 40 -> 64>

// TRITON-LABEL: tl.kernel @asked_for_kernel({{.*}}%BLOCK_M: !tl.constexpr<8>, %BLOCK_N: !tl.constexpr<64>)

// A vector is not padded along a batch dimension of another product.

!qb = tensor<1x64xf16, #compound.dims<B, D @HBM>>
!wb = tensor<64x32xf16, #compound.dims<D, N @HBM>>
!sb = tensor<1x32xf32, #compound.dims<B, N @HBM>>
!ub = tensor<1x16x32xf16, #compound.dims<B, R, N @HBM>>
!vb = tensor<1x32x16xf16, #compound.dims<B, N, G @HBM>>
!yb = tensor<1x16x16xf32, #compound.dims<B, R, G @HBM>>
!q2 = tensor<1x64xf16, #compound.dims<B, D @SMEM>>
!w2 = tensor<64x32xf16, #compound.dims<D, N @SMEM>>
!s2 = tensor<1x32xf32, #compound.dims<B, N @REG>>
!u2 = tensor<1x16x32xf16, #compound.dims<B, R, N @SMEM>>
!v2 = tensor<1x32x16xf16, #compound.dims<B, N, G @SMEM>>
!y2 = tensor<1x16x16xf32, #compound.dims<B, R, G @REG>>

func.func @beside_a_batch(%q: !qb, %w: !wb, %u: !ub, %v: !vb) -> (!sb, !yb) {
  %s, %y = schedule.spatial on grid [g0: B = 1] ins(%q, %w, %u, %v : !qb, !wb, !ub, !vb) outs(!sb, !yb) {
  ^bb0(%q2: !q2, %w2: !w2, %u2: !u2, %v2: !v2):
    %s2 = compound.contract %q2, %w2 : !q2, !w2 -> !s2
    %y2 = compound.contract %u2, %v2 : !u2, !v2 -> !y2
    schedule.yield %s2, %y2 : !s2, !y2
  }
  func.return %s, %y : !sb, !yb
}

// CHECK-LABEL: func.func @beside_a_batch
// CHECK:         blocks <B: 1 -> 1, D: 64 -> 64, N: 32 -> 32, R: 16 -> 16, G: 16 -> 16>
