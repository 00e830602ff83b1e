// The gradient of a table of 1000 embeddings: those of 128 tokens, behind a projection to 256 columns, added to the rows that ids name.

!T_N = tensor<128x256xf16, #compound.dims<T, N>>
!D_N = tensor<64x256xf16, #compound.dims<D, N>>
!T_i32 = tensor<128xi32, #compound.dims<T>>
!T_D_f32 = tensor<128x64xf32, #compound.dims<T, D>>
!V_D_f32 = tensor<1000x64xf32, #compound.dims<V, D>>
func.func @embedding_gradient(%dy: !T_N, %w: !D_N, %ids: !T_i32) -> !V_D_f32 {
  %dx = compound.contract %dy, %w : !T_N, !D_N -> !T_D_f32
  %g = compound.scatter_add %dx, %ids into "V" : !T_D_f32, !T_i32 -> !V_D_f32
  func.return %g : !V_D_f32
}
