// RUN: comet-opt %s -p outline-kernels,lower-to-triton --split-input-file --verify-diagnostics | filecheck %s

// CHECK: lower-to-triton: dataflow.kernel makes tensor<6xf64, #compound.dims<M @HBM>>; Triton kernels take elements of f16, bf16, f32, i32, i64, i8 and i1; take one of these
func.func @f(%x: tensor<6xf64, #compound.dims<M @HBM>>) -> tensor<6xf64, #compound.dims<M @HBM>> {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<6xf64, #compound.dims<M @HBM>>) outs(tensor<6xf64, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<3xf64, #compound.dims<M @REG>>):
    %y1 = compound.map exp %x1 : tensor<3xf64, #compound.dims<M @REG>> -> tensor<3xf64, #compound.dims<M @REG>>
    schedule.yield %y1 : tensor<3xf64, #compound.dims<M @REG>>
  }
  func.return %y : tensor<6xf64, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: a block of M=2048 x N=1024 has 2097152 elements, Triton takes 1048576; choose smaller tiles
func.func @f(%x: tensor<2000x900xf32, #compound.dims<M, N @HBM>>) -> tensor<2000x900xf32, #compound.dims<M, N @HBM>> {
  %y = schedule.spatial on grid [g0: M = 1] ins(%x : tensor<2000x900xf32, #compound.dims<M, N @HBM>>) outs(tensor<2000x900xf32, #compound.dims<M, N @HBM>>) {
  ^bb0(%x1: tensor<2000x900xf32, #compound.dims<M, N @REG>>):
    schedule.yield %x1 : tensor<2000x900xf32, #compound.dims<M, N @REG>>
  }
  func.return %y : tensor<2000x900xf32, #compound.dims<M, N @HBM>>
}

// -----

// CHECK: lower-to-triton: tensor<3xf32, #compound.dims<M @HBM>> is used in device memory, without a load; load it at the border of a node first
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) outs(tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<3xf32, #compound.dims<M @HBM>>):
    %y1 = compound.map exp %x1 : tensor<3xf32, #compound.dims<M @HBM>> -> tensor<3xf32, #compound.dims<M @REG>>
    schedule.yield %y1 : tensor<3xf32, #compound.dims<M @REG>>
  }
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: tensor<3xf32, #compound.dims<M @HBM>> is yielded without being computed; load it into another level first
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) outs(tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<3xf32, #compound.dims<M @HBM>>):
    schedule.yield %x1 : tensor<3xf32, #compound.dims<M @HBM>>
  }
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// Blocks of matrix products have at least 16 columns, others 8 for 6 elements.
// CHECK: lower-to-triton: compound.rename of a tile from M to N, whose slices differ; rename the value in device memory
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>, %a: tensor<20x20xf16, #compound.dims<P, K @HBM>>, %b: tensor<20x6xf16, #compound.dims<K, N @HBM>>) -> tensor<20x6xf32, #compound.dims<P, N @HBM>> {
  %y = schedule.spatial on grid [g0: P = 1] ins(%x, %a, %b : tensor<6xf32, #compound.dims<M @HBM>>, tensor<20x20xf16, #compound.dims<P, K @HBM>>, tensor<20x6xf16, #compound.dims<K, N @HBM>>) outs(tensor<20x6xf32, #compound.dims<P, N @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<M @REG>>, %a1: tensor<20x20xf16, #compound.dims<P, K @SMEM>>, %b1: tensor<20x6xf16, #compound.dims<K, N @SMEM>>):
    %c = compound.contract %a1, %b1 : tensor<20x20xf16, #compound.dims<P, K @SMEM>>, tensor<20x6xf16, #compound.dims<K, N @SMEM>> -> tensor<20x6xf32, #compound.dims<P, N @REG>>
    %n = compound.rename %x1 : tensor<6xf32, #compound.dims<M @REG>> -> tensor<6xf32, #compound.dims<N @REG>>
    %y1 = compound.map add %c, %n : tensor<20x6xf32, #compound.dims<P, N @REG>>, tensor<6xf32, #compound.dims<N @REG>> -> tensor<20x6xf32, #compound.dims<P, N @REG>>
    schedule.yield %y1 : tensor<20x6xf32, #compound.dims<P, N @REG>>
  }
  func.return %y : tensor<20x6xf32, #compound.dims<P, N @HBM>>
}

// -----

// CHECK: lower-to-triton: compound.rename sees M in parts inside a node; put it in front of the node
func.func @f(%x: tensor<4x6xf32, #compound.dims<B, M @HBM>>) -> tensor<4x2x3xf32, #compound.dims<B, M_part, M_in @HBM>> {
  %y = schedule.spatial on grid [g0: B = 4] ins(%x : tensor<4x6xf32, #compound.dims<B, M @HBM>>) outs(tensor<4x2x3xf32, #compound.dims<B, M_part, M_in @HBM>>) {
  ^bb0(%x1: tensor<1x6xf32, #compound.dims<B, M @REG>>):
    %y1 = compound.rename %x1 split "M" : tensor<1x6xf32, #compound.dims<B, M @REG>> -> tensor<1x2x3xf32, #compound.dims<B, M_part, M_in @REG>>
    schedule.yield %y1 : tensor<1x2x3xf32, #compound.dims<B, M_part, M_in @REG>>
  }
  func.return %y : tensor<4x2x3xf32, #compound.dims<B, M_part, M_in @HBM>>
}

// -----

// CHECK: lower-to-triton: schedule.spatial cannot be in a kernel of one GPU
func.func @f(%x: tensor<6xf32, #compound.dims<M @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : tensor<6xf32, #compound.dims<M @HBM>>) outs(tensor<6xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x1: tensor<3xf32, #compound.dims<M @REG>>):
    %y1 = schedule.spatial on grid [g1: M = 3] ins(%x1 : tensor<3xf32, #compound.dims<M @REG>>) outs(tensor<3xf32, #compound.dims<M @REG>>) {
    ^bb1(%x2: tensor<1xf32, #compound.dims<M @REG>>):
      schedule.yield %x2 : tensor<1xf32, #compound.dims<M @REG>>
    }
    schedule.yield %y1 : tensor<3xf32, #compound.dims<M @REG>>
  }
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: lower-to-triton: schedule.temporal concatenates tiles of N in REG, which Triton cannot; make the tile the whole dimension, or keep the result in device memory
func.func @f(%x: tensor<6xf32, #compound.dims<N @HBM>>) -> tensor<6xf32, #compound.dims<N @HBM>> {
  %y = schedule.spatial on grid [g0: N = 1] ins(%x : tensor<6xf32, #compound.dims<N @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<N @HBM>>):
    %y1 = schedule.temporal [N = 2] ins(%x1 : tensor<6xf32, #compound.dims<N @HBM>>) outs(tensor<6xf32, #compound.dims<N @REG>>) {
    ^bb1(%x2: tensor<3xf32, #compound.dims<N @REG>>):
      schedule.yield %x2 : tensor<3xf32, #compound.dims<N @REG>>
    }
    schedule.yield %y1 : tensor<6xf32, #compound.dims<N @REG>>
  }
  func.return %y : tensor<6xf32, #compound.dims<N @HBM>>
}

// -----

// CHECK: lower-to-triton: schedule.temporal splits tensor<3xf32, #compound.dims<N @REG>> along N although it is in registers, which Triton cannot; keep the value in device memory
func.func @f(%x: tensor<6xf32, #compound.dims<N @HBM>>) -> tensor<6xf32, #compound.dims<N @HBM>> {
  %y = schedule.spatial on grid [g0: N = 1] ins(%x : tensor<6xf32, #compound.dims<N @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) {
  ^bb0(%x1: tensor<6xf32, #compound.dims<N @REG>>):
    %y1 = schedule.temporal [N = 2] ins(%x1 : tensor<6xf32, #compound.dims<N @REG>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) {
    ^bb1(%x2: tensor<3xf32, #compound.dims<N @REG>>):
      schedule.yield %x2 : tensor<3xf32, #compound.dims<N @REG>>
    }
    schedule.yield %y1 : tensor<6xf32, #compound.dims<N @HBM>>
  }
  func.return %y : tensor<6xf32, #compound.dims<N @HBM>>
}

// -----

// CHECK: lower-to-triton: schedule.temporal reduces K outside the loop over N; make N the outer loop
func.func @f(%x: tensor<6x4xf32, #compound.dims<N, K @HBM>>) -> tensor<6xf32, #compound.dims<N @HBM>> {
  %y = schedule.spatial on grid [g0: N = 1] ins(%x : tensor<6x4xf32, #compound.dims<N, K @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) {
  ^bb0(%x1: tensor<6x4xf32, #compound.dims<N, K @HBM>>):
    %y1 = schedule.temporal [K = 2, N = 2] ins(%x1 : tensor<6x4xf32, #compound.dims<N, K @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) combine ["add"] {
    ^bb1(%x2: tensor<3x2xf32, #compound.dims<N, K @REG>>):
      %s = compound.reduce add %x2 : tensor<3x2xf32, #compound.dims<N, K @REG>> -> tensor<3xf32, #compound.dims<N @REG>>
      schedule.yield %s : tensor<3xf32, #compound.dims<N @REG>>
    }
    schedule.yield %y1 : tensor<6xf32, #compound.dims<N @HBM>>
  }
  func.return %y : tensor<6xf32, #compound.dims<N @HBM>>
}

// -----

// CHECK: lower-to-triton: schedule.temporal splits an iter_arg along N; let a node of its own loop over N
func.func @f(%x: tensor<6x4xf32, #compound.dims<N, K @HBM>>) -> tensor<6xf32, #compound.dims<N @HBM>> {
  %y = schedule.spatial on grid [g0: N = 1] ins(%x : tensor<6x4xf32, #compound.dims<N, K @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) {
  ^bb0(%x1: tensor<6x4xf32, #compound.dims<N, K @HBM>>):
    %zero = compound.fill 0.0 : tensor<6xf32, #compound.dims<N @HBM>>
    %y1 = schedule.temporal [N = 2, K = 2] ins(%x1 : tensor<6x4xf32, #compound.dims<N, K @HBM>>) iter_args(%zero : tensor<6xf32, #compound.dims<N @HBM>>) outs(tensor<6xf32, #compound.dims<N @HBM>>) combine ["fold"] {
    ^bb1(%x2: tensor<3x2xf32, #compound.dims<N, K @REG>>, %old: tensor<3xf32, #compound.dims<N @REG>>):
      %s = compound.reduce add %x2 : tensor<3x2xf32, #compound.dims<N, K @REG>> -> tensor<3xf32, #compound.dims<N @REG>>
      %new = compound.map add %old, %s : tensor<3xf32, #compound.dims<N @REG>>, tensor<3xf32, #compound.dims<N @REG>> -> tensor<3xf32, #compound.dims<N @REG>>
      schedule.yield %new : tensor<3xf32, #compound.dims<N @REG>>
    }
    schedule.yield %y1 : tensor<6xf32, #compound.dims<N @HBM>>
  }
  func.return %y : tensor<6xf32, #compound.dims<N @HBM>>
}

// -----

// CHECK: lower-to-triton: programs of the grid combine tensor<6xf32, #compound.dims<M @HBM>> by add; split the dimension in a temporal loop instead
func.func @f(%x: tensor<6x8xf32, #compound.dims<M, N @HBM>>) -> tensor<6xf32, #compound.dims<M @HBM>> {
  %y = schedule.spatial on grid [g0: N = 2] ins(%x : tensor<6x8xf32, #compound.dims<M, N @HBM>>) outs(tensor<6xf32, #compound.dims<M @HBM>>) combine ["add"] {
  ^bb0(%x1: tensor<6x4xf32, #compound.dims<M, N @REG>>):
    %y1 = compound.reduce add %x1 : tensor<6x4xf32, #compound.dims<M, N @REG>> -> tensor<6xf32, #compound.dims<M @REG>>
    schedule.yield %y1 : tensor<6xf32, #compound.dims<M @REG>>
  }
  func.return %y : tensor<6xf32, #compound.dims<M @HBM>>
}


// -----

// CHECK: lower-to-triton: schedule.temporal combines tensor<3xf32, #compound.dims<M @HBM>> in device memory, which Triton cannot; combine it in registers, and copy it after the node
!x = tensor<6x8xf32, #compound.dims<M, K @HBM>>
!xm = tensor<3x8xf32, #compound.dims<M, K @HBM>>
!xk = tensor<3x4xf32, #compound.dims<M, K @HBM>>
!t = tensor<3x4xf32, #compound.dims<M, K @REG>>
!s = tensor<3xf32, #compound.dims<M @REG>>
!m = tensor<3xf32, #compound.dims<M @HBM>>
!r = tensor<6xf32, #compound.dims<M @HBM>>
func.func @f(%x: !x) -> !r {
  %y = schedule.spatial on grid [g0: M = 2] ins(%x : !x) outs(!r) {
  ^bb0(%x1: !xm):
    %y1 = schedule.temporal [K = 2] ins(%x1 : !xm) outs(!m) combine ["add"] {
    ^bb1(%x2: !xk):
      %t = schedule.copy %x2 : !xk -> !t
      %s = compound.reduce add %t : !t -> !s
      %m = schedule.copy %s : !s -> !m
      schedule.yield %m : !m
    }
    schedule.yield %y1 : !m
  }
  func.return %y : !r
}

// -----

// CHECK: lower-to-triton: tensor<8x2xf32, #compound.dims<V, D @HBM>> is no tensor in memory; run lower-views before fuse
func.func @f(%x: tensor<4x2xf32, #compound.dims<V, D @HBM>>, %i: tensor<6xi32, #compound.dims<T @HBM>>) -> tensor<6x2xf32, #compound.dims<T, D @HBM>> {
  %c = compound.concat "V" %x, %x : tensor<4x2xf32, #compound.dims<V, D @HBM>>, tensor<4x2xf32, #compound.dims<V, D @HBM>> -> tensor<8x2xf32, #compound.dims<V, D @HBM>>
  %r = compound.gather %c, %i along "V" : tensor<8x2xf32, #compound.dims<V, D @HBM>>, tensor<6xi32, #compound.dims<T @HBM>> -> tensor<6x2xf32, #compound.dims<T, D @HBM>>
  %y = schedule.spatial on grid [g0: T = 2] ins(%r : tensor<6x2xf32, #compound.dims<T, D @HBM>>) outs(tensor<6x2xf32, #compound.dims<T, D @HBM>>) {
  ^bb0(%r1: tensor<3x2xf32, #compound.dims<T, D @REG>>):
    %y1 = compound.map exp %r1 : tensor<3x2xf32, #compound.dims<T, D @REG>> -> tensor<3x2xf32, #compound.dims<T, D @REG>>
    schedule.yield %y1 : tensor<3x2xf32, #compound.dims<T, D @REG>>
  }
  func.return %y : tensor<6x2xf32, #compound.dims<T, D @HBM>>
}

// -----

// CHECK: lower-to-triton: tensor<6xi32, #compound.dims<M @HBM>> has positions, which are not in memory; run lower-views before fuse
!x = tensor<3x2xf32, #compound.dims<A, B @HBM>>
!i = tensor<3x2xi32, #compound.dims<A, B @HBM>>
func.func @f(%x: !x) -> !x {
  %m = compound.index : tensor<6xi32, #compound.dims<M @HBM>>
  %i = compound.rename %m split "M" : tensor<6xi32, #compound.dims<M @HBM>> -> !i
  %y = schedule.spatial on grid [g0: A = 3] ins(%x, %i : !x, !i) outs(!x) {
  ^bb0(%x1: tensor<1x2xf32, #compound.dims<A, B @REG>>, %i1: tensor<1x2xi32, #compound.dims<A, B @REG>>):
    %f = compound.cast %i1 : tensor<1x2xi32, #compound.dims<A, B @REG>> -> tensor<1x2xf32, #compound.dims<A, B @REG>>
    %y1 = compound.map add %x1, %f : tensor<1x2xf32, #compound.dims<A, B @REG>>, tensor<1x2xf32, #compound.dims<A, B @REG>> -> tensor<1x2xf32, #compound.dims<A, B @REG>>
    schedule.yield %y1 : tensor<1x2xf32, #compound.dims<A, B @REG>>
  }
  func.return %y : !x
}
