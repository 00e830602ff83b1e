// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// CHECK:       tl.kernel @gemm(%a: !tl.ptr<f16>, %b: !tl.ptr<f16>, %c: !tl.ptr<f32>, %K: !tl.constexpr<40>, %BLOCK: !tl.constexpr<16>) attributes {tl.comment = "one tile"} {
// CHECK-GENERIC: "tl.kernel"() <{sym_name = "gemm"}> ({
tl.kernel @gemm(%a: !tl.ptr<f16>, %b: !tl.ptr<f16>, %c: !tl.ptr<f32>, %K: !tl.constexpr<40>, %BLOCK: !tl.constexpr<16>) attributes {tl.comment = "one tile"} {
  // CHECK-NEXT:    %g0 = tl.program_id 0
  %g0 = tl.program_id 0
  // CHECK-NEXT:    %programs = tl.num_programs 0
  %programs = tl.num_programs 0
  // CHECK-NEXT:    %g1, %g2 = tl.swizzle2d %g0, %programs shape [4, 2] group 2
  %g1, %g2 = tl.swizzle2d %g0, %programs shape [4, 2] group 2
  // CHECK-NEXT:    %r = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
  %r = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
  // CHECK-NEXT:    %start = tl.binary mul %g0, %BLOCK : (i32, !tl.constexpr<16>) -> i32
  %start = tl.binary mul %g0, %BLOCK : (i32, !tl.constexpr<16>) -> i32
  // CHECK-NEXT:    %offs = tl.binary add %r, %start : (tensor<16xi32>, i32) -> tensor<16xi32>
  %offs = tl.binary add %r, %start : (tensor<16xi32>, i32) -> tensor<16xi32>
  // CHECK-NEXT:    %rows = tl.expand_dims %offs [1] : tensor<16xi32> -> tensor<16x1xi32>
  %rows = tl.expand_dims %offs [1] : tensor<16xi32> -> tensor<16x1xi32>
  // CHECK-NEXT:    %cols = tl.expand_dims %r [0] : tensor<16xi32> -> tensor<1x16xi32>
  %cols = tl.expand_dims %r [0] : tensor<16xi32> -> tensor<1x16xi32>
  // CHECK-NEXT:    %zero = tl.constant 0 : i32
  %zero = tl.constant 0 : i32
  // CHECK-NEXT:    %pad = tl.constant 0.000000e+00 : f16
  %pad = tl.constant 0.0 : f16
  // CHECK-NEXT:    %init = tl.full 0.000000e+00 : f32 dims %BLOCK, %BLOCK : !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
  %init = tl.full 0.0 : f32 dims %BLOCK, %BLOCK : !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
  // CHECK-NEXT:    %sum = tl.for %k : i32 = %zero : i32 to %K : !tl.constexpr<40> step %BLOCK : !tl.constexpr<16> iter_args(%acc = %init) -> (tensor<16x16xf32>) {
  %sum = tl.for %k : i32 = %zero : i32 to %K : !tl.constexpr<40> step %BLOCK : !tl.constexpr<16> iter_args(%acc = %init) -> (tensor<16x16xf32>) {
    // CHECK-NEXT:      %i = tl.binary add %cols, %k : (tensor<1x16xi32>, i32) -> tensor<1x16xi32>
    %i = tl.binary add %cols, %k : (tensor<1x16xi32>, i32) -> tensor<1x16xi32>
    // CHECK-NEXT:      %m = tl.cmp lt %i, %K : (tensor<1x16xi32>, !tl.constexpr<40>) -> tensor<1x16xi1>
    %m = tl.cmp lt %i, %K : (tensor<1x16xi32>, !tl.constexpr<40>) -> tensor<1x16xi1>
    %row = tl.binary mul %rows, %K : (tensor<16x1xi32>, !tl.constexpr<40>) -> tensor<16x1xi32>
    %at = tl.binary add %row, %i : (tensor<16x1xi32>, tensor<1x16xi32>) -> tensor<16x16xi32>
    // CHECK:      %pa = tl.addptr %a, %at : (!tl.ptr<f16>, tensor<16x16xi32>) -> tensor<16x16x!tl.ptr<f16>>
    %pa = tl.addptr %a, %at : (!tl.ptr<f16>, tensor<16x16xi32>) -> tensor<16x16x!tl.ptr<f16>>
    // CHECK-NEXT:      %x = tl.load %pa mask %m : tensor<1x16xi1> other %pad : f16 : tensor<16x16x!tl.ptr<f16>> -> tensor<16x16xf16>
    %x = tl.load %pa mask %m : tensor<1x16xi1> other %pad : f16 : tensor<16x16x!tl.ptr<f16>> -> tensor<16x16xf16>
    // CHECK-NEXT:      %y = tl.permute %x [1, 0] : tensor<16x16xf16> -> tensor<16x16xf16>
    %y = tl.permute %x [1, 0] : tensor<16x16xf16> -> tensor<16x16xf16>
    // CHECK-NEXT:      %xd = tl.dot_operand %x : tensor<16x16xf16> -> tensor<16x16xf16>
    %xd = tl.dot_operand %x : tensor<16x16xf16> -> tensor<16x16xf16>
    // CHECK-NEXT:      %next = tl.dot %xd, %y acc %acc : tensor<16x16xf32> precision tf32 : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %next = tl.dot %xd, %y acc %acc : tensor<16x16xf32> precision tf32 : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    // CHECK-NEXT:      tl.yield %next : tensor<16x16xf32>
    tl.yield %next : tensor<16x16xf32>
    // CHECK-NEXT:    } {tl.comment = "over K"}
  } {tl.comment = "over K"}
  // CHECK-NEXT:    %rowmax = tl.reduce max %sum axis 1 : tensor<16x16xf32> -> tensor<16xf32>
  %rowmax = tl.reduce max %sum axis 1 : tensor<16x16xf32> -> tensor<16xf32>
  // CHECK-NEXT:    %sums = tl.cumsum %sum axis 0 : tensor<16x16xf32> -> tensor<16x16xf32>
  %sums = tl.cumsum %sum axis 0 : tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK-NEXT:    %e = tl.unary exp %sum : tensor<16x16xf32> -> tensor<16x16xf32>
  %e = tl.unary exp %sum : tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK-NEXT:    %h = tl.cast %e : tensor<16x16xf32> -> tensor<16x16xf16>
  %h = tl.cast %e : tensor<16x16xf32> -> tensor<16x16xf16>
  %mask = tl.cmp lt %offs, %K : (tensor<16xi32>, !tl.constexpr<40>) -> tensor<16xi1>
  %ninf = tl.constant 0xff800000 : f32
  // CHECK:         %kept = tl.where %mask, %rowmax, %ninf : (tensor<16xi1>, tensor<16xf32>, f32) -> tensor<16xf32>
  %kept = tl.where %mask, %rowmax, %ninf : (tensor<16xi1>, tensor<16xf32>, f32) -> tensor<16xf32>
  %seed = tl.constant 7 : i64
  // CHECK:         %u = tl.rand %seed, %offs : (i64, tensor<16xi32>) -> tensor<16xf32>
  %u = tl.rand %seed, %offs : (i64, tensor<16xi32>) -> tensor<16xf32>
  %column = tl.expand_dims %kept [1] : tensor<16xf32> -> tensor<16x1xf32>
  // CHECK:    %wide = tl.broadcast_to %column to %BLOCK, %BLOCK : tensor<16x1xf32>, !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
  %wide = tl.broadcast_to %column to %BLOCK, %BLOCK : tensor<16x1xf32>, !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
  %pc = tl.addptr %c, %offs : (!tl.ptr<f32>, tensor<16xi32>) -> tensor<16x!tl.ptr<f32>>
  // CHECK:    tl.store %pc, %kept mask %mask : tensor<16xi1> : tensor<16x!tl.ptr<f32>>, tensor<16xf32>
  tl.store %pc, %kept mask %mask : tensor<16xi1> : tensor<16x!tl.ptr<f32>>, tensor<16xf32>
  // CHECK-NEXT: tl.atomic_add %pc, %kept mask %mask : tensor<16xi1> : tensor<16x!tl.ptr<f32>>, tensor<16xf32>
  tl.atomic_add %pc, %kept mask %mask : tensor<16xi1> : tensor<16x!tl.ptr<f32>>, tensor<16xf32>
  // CHECK-NEXT:    tl.debug_barrier
  tl.debug_barrier
  // CHECK-NEXT:    tl.for num_stages 3 %tile : i32 = %zero : i32 to %K : !tl.constexpr<40> step %BLOCK : !tl.constexpr<16> {
  tl.for num_stages 3 %tile : i32 = %zero : i32 to %K : !tl.constexpr<40> step %BLOCK : !tl.constexpr<16> {
  // CHECK-NEXT:    }
  }
  // CHECK-NEXT:    tl.return
}

func.func @host(%a: tensor<16x40xf16>, %b: tensor<40x16xf16>) -> tensor<16xf32> {
  // CHECK:         %c = tl.empty : tensor<16xf32>
  %c = tl.empty : tensor<16xf32>
  // CHECK-NEXT:    %d = tl.view %c : tensor<16xf32> -> tensor<4x4xf32>
  %d = tl.view %c : tensor<16xf32> -> tensor<4x4xf32>
  // CHECK-NEXT:    tl.launch @gemm grid [1, 2] warps 8 stages 3 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  tl.launch @gemm grid [1, 2] warps 8 stages 3 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  // CHECK-NEXT:    tl.launch @gemm grid [4] warps 8 stages 3 registers 96 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  tl.launch @gemm grid [4] warps 8 stages 3 registers 96 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  // CHECK-NEXT:    tl.launch @gemm grid [4] warps 8 stages 3 cluster 2 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  tl.launch @gemm grid [4] warps 8 stages 3 cluster 2 on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  // CHECK-NEXT:    tl.launch @gemm grid [4] cooperative on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  tl.launch @gemm grid [4] cooperative on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  // CHECK-NEXT:    tl.launch @gemm grid [4] on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  tl.launch @gemm grid [4] on %a, %b, %c : tensor<16x40xf16>, tensor<40x16xf16>, tensor<16xf32>
  // CHECK-NEXT:    %e = tl.empty : tensor<16xf32>
  %e = tl.empty : tensor<16xf32>
  // CHECK-NEXT:    tl.dealloc %e : tensor<16xf32>
  tl.dealloc %e : tensor<16xf32>
  func.return %c : tensor<16xf32>
}
