// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!G = tensor<8x10xf16, #compound.dims<M, N>>
!MN = tensor<8x2xf16, #compound.dims<M, N>>
!M = tensor<8xf16, #compound.dims<M>>
!MP = tensor<8x6xf16, #compound.dims<M, P>>
collective.mesh @gpus {rank = 8}
collective.mesh @edge {x = 2, y = 3} at {x = "GB", y = "OB"}
func.func @reductions(%a: !G) -> (!M, !M, !G) {
  %max, %sum, %all = collective.spmd on @edge ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!M, !M, !G) sharded [{}, {M = ["x", "y"]}, {N = ["x", "y"]}] {
  ^bb0(%l: !MN):
    %m = compound.reduce max %l : !MN -> !M
    %m1 = collective.all_reduce max %m on @edge ["y"] from "OB" to "GB" algorithm ring : !M -> !M
    %m2 = collective.all_reduce max %m1 on @edge ["x"] : !M -> !M
    %s = compound.reduce add %l : !MN -> !M
    %s1 = collective.reduce_scatter add "M" %s on @edge ["x", "y"] : !M -> tensor<2xf16, #compound.dims<M>>
    %p = collective.all_gather "P" %s on @edge ["x", "y"] : !M -> !MP
    collective.yield %m2, %s1, %l : !M, tensor<2xf16, #compound.dims<M>>, !MN
  }
  func.return %max, %sum, %all : !M, !M, !G
}
func.func @moves(%a: !G) -> !G {
  %r = collective.spmd on @edge ins(%a : !G) sharded [{N = ["x", "y"]}] outs(!G) sharded [{N = ["x", "y"]}] {
  ^bb0(%l: !MN):
    %g = collective.gather "N" %l root 4 on @edge ["x", "y"] : !MN -> !G
    %b = collective.broadcast %g root 4 on @edge ["x", "y"] algorithm tree : !G -> !G
    %s = collective.scatter "N" %b root 0 on @edge ["x", "y"] : !G -> !MN
    %t = collective.all_to_all split "M" concat "N" %s on @edge ["x", "y"] : !MN -> tensor<2x10xf16, #compound.dims<M, N>>
    %k = collective.send %s offset -1 wrap true on @edge ["y"] : !MN -> !collective.token<!MN>
    %v = collective.recv %k : !collective.token<!MN> -> !MN
    collective.yield %v : !MN
  }
  func.return %r : !G
}

// CHECK:      builtin.module {
// CHECK-NEXT:   collective.mesh @gpus {rank = 8}
// CHECK-NEXT:   collective.mesh @edge {x = 2, y = 3} at {x = "GB", y = "OB"}
// CHECK-NEXT:   func.func @reductions(%a: tensor<8x10xf16, #compound.dims<M, N>>) -> (tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>) {
// CHECK-NEXT:     %max, %sum, %all = collective.spmd on @edge ins(%a : tensor<8x10xf16, #compound.dims<M, N>>) sharded [{N = ["x", "y"]}] outs(tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>) sharded [{}, {M = ["x", "y"]}, {N = ["x", "y"]}] {
// CHECK-NEXT:     ^bb0(%l: tensor<8x2xf16, #compound.dims<M, N>>):
// CHECK-NEXT:       %m = compound.reduce max %l : tensor<8x2xf16, #compound.dims<M, N>> -> tensor<8xf16, #compound.dims<M>>
// CHECK-NEXT:       %m1 = collective.all_reduce max %m on @edge ["y"] from "OB" to "GB" algorithm ring : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>
// CHECK-NEXT:       %m2 = collective.all_reduce max %m1 on @edge ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>
// CHECK-NEXT:       %s = compound.reduce add %l : tensor<8x2xf16, #compound.dims<M, N>> -> tensor<8xf16, #compound.dims<M>>
// CHECK-NEXT:       %s1 = collective.reduce_scatter add "M" %s on @edge ["x", "y"] : tensor<8xf16, #compound.dims<M>> -> tensor<2xf16, #compound.dims<M>>
// CHECK-NEXT:       %p = collective.all_gather "P" %s on @edge ["x", "y"] : tensor<8xf16, #compound.dims<M>> -> tensor<8x6xf16, #compound.dims<M, P>>
// CHECK-NEXT:       collective.yield %m2, %s1, %l : tensor<8xf16, #compound.dims<M>>, tensor<2xf16, #compound.dims<M>>, tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %max, %sum, %all : tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @moves(%a: tensor<8x10xf16, #compound.dims<M, N>>) -> tensor<8x10xf16, #compound.dims<M, N>> {
// CHECK-NEXT:     %r = collective.spmd on @edge ins(%a : tensor<8x10xf16, #compound.dims<M, N>>) sharded [{N = ["x", "y"]}] outs(tensor<8x10xf16, #compound.dims<M, N>>) sharded [{N = ["x", "y"]}] {
// CHECK-NEXT:     ^bb0(%l: tensor<8x2xf16, #compound.dims<M, N>>):
// CHECK-NEXT:       %g = collective.gather "N" %l root 4 on @edge ["x", "y"] : tensor<8x2xf16, #compound.dims<M, N>> -> tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-NEXT:       %b = collective.broadcast %g root 4 on @edge ["x", "y"] algorithm tree : tensor<8x10xf16, #compound.dims<M, N>> -> tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-NEXT:       %s = collective.scatter "N" %b root 0 on @edge ["x", "y"] : tensor<8x10xf16, #compound.dims<M, N>> -> tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-NEXT:       %t = collective.all_to_all split "M" concat "N" %s on @edge ["x", "y"] : tensor<8x2xf16, #compound.dims<M, N>> -> tensor<2x10xf16, #compound.dims<M, N>>
// CHECK-NEXT:       %k = collective.send %s offset -1 wrap true on @edge ["y"] : tensor<8x2xf16, #compound.dims<M, N>> -> !collective.token<tensor<8x2xf16, #compound.dims<M, N>>>
// CHECK-NEXT:       %v = collective.recv %k : !collective.token<tensor<8x2xf16, #compound.dims<M, N>>> -> tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-NEXT:       collective.yield %v : tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %r : tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT: }

// CHECK-GENERIC:      "builtin.module"() ({
// CHECK-GENERIC-NEXT:   "collective.mesh"() <{sym_name = "gpus", axes = ["rank"], extents = array<i64: 8>}> : () -> ()
// CHECK-GENERIC-NEXT:   "collective.mesh"() <{sym_name = "edge", axes = ["x", "y"], extents = array<i64: 2, 3>, levels = ["GB", "OB"]}> : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "reductions", function_type = (tensor<8x10xf16, #compound.dims<M, N>>) -> (tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>)}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%a: tensor<8x10xf16, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:     %max, %sum, %all = "collective.spmd"(%a) <{mesh = @edge, in_shardings = [{N = ["x", "y"]}], out_shardings = [{}, {M = ["x", "y"]}, {N = ["x", "y"]}]}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%l: tensor<8x2xf16, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:       %m = "compound.reduce"(%l) <{kind = #compound<reduce_kind max>}> : (tensor<8x2xf16, #compound.dims<M, N>>) -> tensor<8xf16, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %m1 = "collective.all_reduce"(%m) <{kind = #compound<reduce_kind max>, mesh = @edge, axes = ["y"], from = "OB", to = "GB", algorithm = #collective<algorithm ring>}> : (tensor<8xf16, #compound.dims<M>>) -> tensor<8xf16, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %m2 = "collective.all_reduce"(%m1) <{kind = #compound<reduce_kind max>, mesh = @edge, axes = ["x"]}> : (tensor<8xf16, #compound.dims<M>>) -> tensor<8xf16, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %s = "compound.reduce"(%l) <{kind = #compound<reduce_kind add>}> : (tensor<8x2xf16, #compound.dims<M, N>>) -> tensor<8xf16, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %s1 = "collective.reduce_scatter"(%s) <{kind = #compound<reduce_kind add>, dim = "M", mesh = @edge, axes = ["x", "y"]}> : (tensor<8xf16, #compound.dims<M>>) -> tensor<2xf16, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %p = "collective.all_gather"(%s) <{dim = "P", mesh = @edge, axes = ["x", "y"]}> : (tensor<8xf16, #compound.dims<M>>) -> tensor<8x6xf16, #compound.dims<M, P>>
// CHECK-GENERIC-NEXT:       "collective.yield"(%m2, %s1, %l) : (tensor<8xf16, #compound.dims<M>>, tensor<2xf16, #compound.dims<M>>, tensor<8x2xf16, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x10xf16, #compound.dims<M, N>>) -> (tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>)
// CHECK-GENERIC-NEXT:     "func.return"(%max, %sum, %all) : (tensor<8xf16, #compound.dims<M>>, tensor<8xf16, #compound.dims<M>>, tensor<8x10xf16, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "moves", function_type = (tensor<8x10xf16, #compound.dims<M, N>>) -> tensor<8x10xf16, #compound.dims<M, N>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%a: tensor<8x10xf16, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:     %r = "collective.spmd"(%a) <{mesh = @edge, in_shardings = [{N = ["x", "y"]}], out_shardings = [{N = ["x", "y"]}]}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%l: tensor<8x2xf16, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:       %g = "collective.gather"(%l) <{dim = "N", root = 4 : i64, mesh = @edge, axes = ["x", "y"]}> : (tensor<8x2xf16, #compound.dims<M, N>>) -> tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:       %b = "collective.broadcast"(%g) <{root = 4 : i64, mesh = @edge, axes = ["x", "y"], algorithm = #collective<algorithm tree>}> : (tensor<8x10xf16, #compound.dims<M, N>>) -> tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:       %s = "collective.scatter"(%b) <{dim = "N", root = 0 : i64, mesh = @edge, axes = ["x", "y"]}> : (tensor<8x10xf16, #compound.dims<M, N>>) -> tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:       %t = "collective.all_to_all"(%s) <{split = "M", concat = "N", mesh = @edge, axes = ["x", "y"]}> : (tensor<8x2xf16, #compound.dims<M, N>>) -> tensor<2x10xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:       %k = "collective.send"(%s) <{offset = -1 : i64, wrap = true, mesh = @edge, axes = ["y"]}> : (tensor<8x2xf16, #compound.dims<M, N>>) -> !collective.token<tensor<8x2xf16, #compound.dims<M, N>>>
// CHECK-GENERIC-NEXT:       %v = "collective.recv"(%k) : (!collective.token<tensor<8x2xf16, #compound.dims<M, N>>>) -> tensor<8x2xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:       "collective.yield"(%v) : (tensor<8x2xf16, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<8x10xf16, #compound.dims<M, N>>) -> tensor<8x10xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<8x10xf16, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT: }) : () -> ()
