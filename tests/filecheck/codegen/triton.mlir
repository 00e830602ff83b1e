// RUN: comet-opt %s -t triton | filecheck %s

tl.kernel @gemm_kernel(%a: !tl.ptr<f16>, %b: !tl.ptr<f16>, %c: !tl.ptr<f32>, %M: !tl.constexpr<20>, %N: !tl.constexpr<11>, %K: !tl.constexpr<40>, %BLOCK: !tl.constexpr<16>) attributes {tl.comment = "one tile"} {
  %g0 = tl.program_id 0
  %0 = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
  %1 = tl.binary mul %g0, %BLOCK : (i32, !tl.constexpr<16>) -> i32
  %offs_m = tl.binary add %1, %0 : (i32, tensor<16xi32>) -> tensor<16xi32>
  %offs_n = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
  %rows = tl.expand_dims %offs_m [1] : tensor<16xi32> -> tensor<16x1xi32>
  %cols = tl.expand_dims %offs_n [0] : tensor<16xi32> -> tensor<1x16xi32>
  %mm = tl.cmp lt %rows, %M : (tensor<16x1xi32>, !tl.constexpr<20>) -> tensor<16x1xi1>
  %mn = tl.cmp lt %cols, %N : (tensor<1x16xi32>, !tl.constexpr<11>) -> tensor<1x16xi1>
  %zero = tl.constant 0 : i32
  %pad = tl.constant 0.0 : f16
  %init = tl.full 0.0 : f32 dims %BLOCK, %BLOCK : !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
  %sum = tl.for %k : i32 = %zero : i32 to %K : !tl.constexpr<40> step %BLOCK : !tl.constexpr<16> iter_args(%acc = %init) -> (tensor<16x16xf32>) {
    %2 = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
    %offs_k = tl.binary add %k, %2 : (i32, tensor<16xi32>) -> tensor<16xi32>
    %mask_k = tl.cmp lt %offs_k, %K : (tensor<16xi32>, !tl.constexpr<40>) -> tensor<16xi1>
    %3 = tl.expand_dims %mask_k [0] : tensor<16xi1> -> tensor<1x16xi1>
    %4 = tl.expand_dims %mask_k [1] : tensor<16xi1> -> tensor<16x1xi1>
    %m = tl.binary and %mm, %3 : (tensor<16x1xi1>, tensor<1x16xi1>) -> tensor<16x16xi1>
    %mb = tl.binary and %4, %mn : (tensor<16x1xi1>, tensor<1x16xi1>) -> tensor<16x16xi1>
    %5 = tl.binary mul %rows, %K : (tensor<16x1xi32>, !tl.constexpr<40>) -> tensor<16x1xi32>
    %6 = tl.addptr %a, %5 : (!tl.ptr<f16>, tensor<16x1xi32>) -> tensor<16x1x!tl.ptr<f16>>
    %7 = tl.expand_dims %offs_k [0] : tensor<16xi32> -> tensor<1x16xi32>
    %8 = tl.addptr %6, %7 : (tensor<16x1x!tl.ptr<f16>>, tensor<1x16xi32>) -> tensor<16x16x!tl.ptr<f16>>
    %x = tl.load %8 mask %m : tensor<16x16xi1> other %pad : f16 : tensor<16x16x!tl.ptr<f16>> -> tensor<16x16xf16>
    %9 = tl.expand_dims %offs_k [1] : tensor<16xi32> -> tensor<16x1xi32>
    %10 = tl.binary mul %9, %N : (tensor<16x1xi32>, !tl.constexpr<11>) -> tensor<16x1xi32>
    %11 = tl.addptr %b, %10 : (!tl.ptr<f16>, tensor<16x1xi32>) -> tensor<16x1x!tl.ptr<f16>>
    %12 = tl.addptr %11, %cols : (tensor<16x1x!tl.ptr<f16>>, tensor<1x16xi32>) -> tensor<16x16x!tl.ptr<f16>>
    %y = tl.load %12 mask %mb : tensor<16x16xi1> other %pad : f16 : tensor<16x16x!tl.ptr<f16>> -> tensor<16x16xf16>
    %13 = tl.dot %x, %y acc %acc : tensor<16x16xf32> {tl.comment = "compound.contract over K"} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    tl.yield %13 : tensor<16x16xf32>
  } {tl.comment = "schedule.temporal [K = 3] combine add"}
  %14 = tl.binary mul %rows, %N : (tensor<16x1xi32>, !tl.constexpr<11>) -> tensor<16x1xi32>
  %15 = tl.addptr %c, %14 : (!tl.ptr<f32>, tensor<16x1xi32>) -> tensor<16x1x!tl.ptr<f32>>
  %16 = tl.addptr %15, %cols : (tensor<16x1x!tl.ptr<f32>>, tensor<1x16xi32>) -> tensor<16x16x!tl.ptr<f32>>
  %17 = tl.binary and %mm, %mn : (tensor<16x1xi1>, tensor<1x16xi1>) -> tensor<16x16xi1>
  tl.store %16, %sum mask %17 : tensor<16x16xi1> : tensor<16x16x!tl.ptr<f32>>, tensor<16x16xf32>
}
func.func @gemm(%a: tensor<20x40xf16>, %b: tensor<40x11xf16>) -> tensor<20x11xf32> {
  %d = tl.empty : tensor<20x11xf32>
  tl.dealloc %d : tensor<20x11xf32>
  %c = tl.empty : tensor<20x11xf32>
  tl.launch @gemm_kernel grid [2] warps 4 stages 3 on %a, %b, %c : tensor<20x40xf16>, tensor<40x11xf16>, tensor<20x11xf32>
  func.return %c : tensor<20x11xf32>
}
func.func private @gemm__reference(%a: tensor<20x40xf16, #compound.dims<M, K>>, %b: tensor<40x11xf16, #compound.dims<K, N>>) -> tensor<20x11xf32, #compound.dims<M, N>> attributes {comet.reference} {
  %c = compound.contract %a, %b : tensor<20x40xf16, #compound.dims<M, K>>, tensor<40x11xf16, #compound.dims<K, N>> -> tensor<20x11xf32, #compound.dims<M, N>>
  func.return %c : tensor<20x11xf32, #compound.dims<M, N>>
}

// CHECK:       Triton kernels of @gemm, emitted by comet.
// CHECK:       from comet.runtime import Program, Tensor, expect_tensor
// CHECK-NEXT:  from comet.runtime import main as comet_run
// CHECK:       @triton.jit
// CHECK-NEXT:  def gemm_kernel(
// CHECK-NEXT:      a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr
// CHECK-NEXT:  ):
// CHECK-NEXT:      """one tile"""
// CHECK-NEXT:      g0 = tl.program_id(0)
// CHECK-NEXT:      offs_m = g0 * BLOCK + tl.arange(0, BLOCK)
// CHECK-NEXT:      offs_n = tl.arange(0, BLOCK)
// CHECK-NEXT:      rows = offs_m[:, None]
// CHECK-NEXT:      cols = offs_n[None, :]
// CHECK-NEXT:      mm = rows < M
// CHECK-NEXT:      mn = cols < N
// CHECK-EMPTY:
// CHECK-NEXT:      # schedule.temporal [K = 3] combine add
// CHECK-NEXT:      acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
// CHECK-NEXT:      for k in range(0, K, BLOCK):
// CHECK-NEXT:          offs_k = k + tl.arange(0, BLOCK)
// CHECK-NEXT:          mask_k = offs_k < K
// CHECK-NEXT:          m = mm & mask_k[None, :]
// CHECK-NEXT:          mb = mask_k[:, None] & mn
// CHECK-NEXT:          x = tl.load(a + rows * K + offs_k[None, :], mask=m, other=0.0)
// CHECK-NEXT:          y = tl.load(b + offs_k[:, None] * N + cols, mask=mb, other=0.0)
// CHECK-NEXT:          acc = tl.dot(x, y, acc)  # compound.contract over K
// CHECK-EMPTY:
// CHECK-NEXT:      tl.store(c + rows * N + cols, acc, mask=mm & mn)
// CHECK:       def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
// CHECK-NEXT:      """The launch plan of @gemm."""
// CHECK-NEXT:      expect_tensor("a", a, (20, 40), "float16")
// CHECK-NEXT:      expect_tensor("b", b, (40, 11), "float16")
// CHECK-NEXT:      d = torch.empty((20, 11), dtype=torch.float32, device=a.device)
// CHECK-NEXT:      del d
// CHECK-NEXT:      c = torch.empty((20, 11), dtype=torch.float32, device=a.device)
// CHECK-NEXT:      gemm_kernel[(2,)](a, b, c, M=20, N=11, K=40, BLOCK=16, num_warps=4, num_stages=3)
// CHECK-NEXT:      return c
// CHECK:       def gemm__reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
// CHECK-NEXT:      """What the program means, in float64 numpy."""
// CHECK-NEXT:      c = a @ b
// CHECK-NEXT:      return c
// CHECK:       PROGRAM = Program(
// CHECK-NEXT:      launch=gemm,
// CHECK-NEXT:      reference=gemm__reference,
// CHECK-NEXT:      inputs=(
// CHECK-NEXT:          Tensor((20, 40), "float16", terms=40),
// CHECK-NEXT:          Tensor((40, 11), "float16", terms=40),
// CHECK-NEXT:      ),
// CHECK-NEXT:      outputs=(Tensor((20, 11), "float32", rounding=7.54e-07),),
// CHECK-NEXT:  )
// CHECK:       if __name__ == "__main__":
// CHECK-NEXT:      raise SystemExit(comet_run([__file__, *sys.argv[1:]]))
