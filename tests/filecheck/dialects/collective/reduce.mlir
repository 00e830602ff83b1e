// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP
// RUN: comet-opt %s | filecheck %s

// A reduction to the root; the region may yield what only instance 0 holds.

!G = tensor<8x10xf16, #compound.dims<M, N>>
!MN = tensor<8x5xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
collective.mesh @edge {x = 2} at {x = "GB"}
func.func @rooted(%a: !G) -> (!M, !M) {
  %all, %one = collective.spmd on @edge ins(%a : !G) sharded [{N = ["x"]}] outs(!M, !M) sharded [{}, {}] {
  ^bb0(%l: !MN):
    %m = compound.reduce max %l : !MN -> !M
    %r = collective.reduce max %m root 0 on @edge ["x"] from "GB" to "GB" algorithm tree : !M -> !M
    %b = collective.broadcast %r root 0 on @edge ["x"] : !M -> !M
    collective.yield %b, %r : !M, !M
  }
  func.return %all, %one : !M, !M
}

// CHECK: %r = collective.reduce max %m root 0 on @edge ["x"] from "GB" to "GB" algorithm tree : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>
// CHECK-GENERIC: %r = "collective.reduce"(%m) <{kind = #compound<reduce_kind max>, root = 0 : i64, mesh = @edge, axes = ["x"], from = "GB", to = "GB", algorithm = #collective<algorithm tree>}> : (tensor<8xf16, #compound.dims<M>>) -> tensor<8xf16, #compound.dims<M>>
