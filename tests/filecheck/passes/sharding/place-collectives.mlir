// RUN: comet-opt %s -p 'place-collectives{at=GB algorithm=ring}' | filecheck %s
// RUN: comet-opt %s -p 'place-collectives{at=OB kind=reduce_scatter_all_gather}' | filecheck %s --check-prefix=SHARES
// RUN: comet-opt %s -p 'place-collectives{at=OB kind=gather}' | filecheck %s --check-prefix=ROOT

collective.mesh @edge {cx = 2, cy = 2, kx = 2} at {cx = "GB", cy = "GB", kx = "OB"}

func.func @softmax(%a: tensor<4x2xf32, #compound.dims<M, K>>, %b: tensor<2x8xf32, #compound.dims<K, N>>) -> tensor<4x8xf32, #compound.dims<M, N>> {
  %p = collective.spmd on @edge ins(%a, %b : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x8xf32, #compound.dims<K, N>>) sharded [{}, {N = ["cx", "kx"]}] outs(tensor<4x8xf32, #compound.dims<M, N>>) sharded [{N = ["cx", "kx"]}] {
  ^bb0(%a_1: tensor<4x2xf32, #compound.dims<M, K>>, %b_1: tensor<2x2xf32, #compound.dims<K, N>>):
    %c = compound.contract %a_1, %b_1 : tensor<4x2xf32, #compound.dims<M, K>>, tensor<2x2xf32, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
    %m = compound.reduce max %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %m_1 = collective.all_reduce max %m on @edge ["cx", "kx"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    %s = compound.map sub %c, %m_1 : tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, N>>
    %e = compound.map exp %s : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
    %l = compound.reduce add %e : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
    %l_1 = collective.all_reduce add %l on @edge ["cx", "kx"] : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
    %p_1 = compound.map div %e, %l_1 : tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, N>>
    collective.yield %p_1 : tensor<4x2xf32, #compound.dims<M, N>>
  }
  func.return %p : tensor<4x8xf32, #compound.dims<M, N>>
}

// CHECK:      %m_1 = collective.all_reduce max %m on @edge ["kx"] from "OB" to "GB" : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT: %m_2 = collective.all_reduce max %m_1 on @edge ["cx"] from "GB" to "GB" algorithm ring : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK:      %l_1 = collective.all_reduce add %l on @edge ["kx"] from "OB" to "GB" : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT: %l_2 = collective.all_reduce add %l_1 on @edge ["cx"] from "GB" to "GB" algorithm ring : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// SHARES:      %m_1 = collective.reduce_scatter max "M" %m on @edge ["kx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<2xf32, #compound.dims<M>>
// SHARES-NEXT: %m_2 = collective.all_gather "M" %m_1 on @edge ["kx"] from "OB" to "OB" : tensor<2xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// SHARES-NEXT: %m_3 = collective.reduce_scatter max "M" %m_2 on @edge ["cx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<2xf32, #compound.dims<M>>
// SHARES-NEXT: %m_4 = collective.all_gather "M" %m_3 on @edge ["cx"] from "OB" to "OB" : tensor<2xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>

// ROOT:      %m_1 = collective.gather "kx_part" %m root 0 on @edge ["kx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, kx_part>>
// ROOT-NEXT: %m_2 = compound.reduce max %m_1 : tensor<4x2xf32, #compound.dims<M, kx_part>> -> tensor<4xf32, #compound.dims<M>>
// ROOT-NEXT: %m_3 = collective.broadcast %m_2 root 0 on @edge ["kx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// ROOT-NEXT: %m_4 = collective.gather "cx_part" %m_3 root 0 on @edge ["cx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, cx_part>>
// ROOT-NEXT: %m_5 = compound.reduce max %m_4 : tensor<4x2xf32, #compound.dims<M, cx_part>> -> tensor<4xf32, #compound.dims<M>>
// ROOT-NEXT: %m_6 = collective.broadcast %m_5 root 0 on @edge ["cx"] from "OB" to "OB" : tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
