// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},select-ranks{ranks=2},add-ctas{ctas=4},decompose{accumulator=f32},stream,distribute{dim=N axes="rank,cta"},insert-collectives,place-collectives{at=SMEM}' | filecheck %s

// What programs of a GPU share is merged before what GPUs share: the partials of a fold, and a maximum.

func.func @softmax(%a: tensor<8x8xf16>, %b: tensor<8x64xf16>) -> tensor<8x64xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x8xf16>, tensor<8x64xf16>) -> tensor<8x64xf16>
  func.return %p : tensor<8x64xf16>
}
// CHECK-LABEL: func.func @softmax
// CHECK:      %m, %l = compound.fold over "N"
// CHECK:      %m_parts = collective.all_gather "cta_part" %m on @h200x8 ["cta"] {{.*}} -> tensor<4x8xf32,
// CHECK-NEXT: %l_parts = collective.all_gather "cta_part" %l on @h200x8 ["cta"]
// CHECK-NEXT: %m_3, %l_3 = compound.fold over "cta_part"
// CHECK:      %m_parts_1 = collective.all_gather "rank_part" %m_3 on @h200x8 ["rank"] {{.*}} -> tensor<2x8xf32,
// CHECK-NEXT: %l_parts_1 = collective.all_gather "rank_part" %l_3 on @h200x8 ["rank"]
// CHECK-NEXT: %m_{{[0-9]+}}, %l_{{[0-9]+}} = compound.fold over "rank_part"

func.func @most(%x: tensor<8x64xf32, #compound.dims<M, N>>) -> tensor<8xf32, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<8x64xf32, #compound.dims<M, N>> -> tensor<8xf32, #compound.dims<M>>
  func.return %m : tensor<8xf32, #compound.dims<M>>
}
// CHECK-LABEL: func.func @most
// CHECK:      %m_1 = compound.reduce max
// CHECK-NEXT: %m_2 = collective.all_reduce max %m_1 on @h200x8 ["cta"] from "SMEM" to "SMEM"
// CHECK-NEXT: %m_3 = collective.all_reduce max %m_2 on @h200x8 ["rank"] from "SMEM" to "SMEM"
// CHECK-NEXT: collective.yield %m_3
