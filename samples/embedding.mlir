// The embeddings of 128 tokens, rows of a table of 1000, each normalized by RMSNorm over D, scaled and projected to 256 columns.

!V_D = tensor<1000x64xf16, #compound.dims<V, D>>
!T_i32 = tensor<128xi32, #compound.dims<T>>
!T_D = tensor<128x64xf16, #compound.dims<T, D>>
!D = tensor<64xf16, #compound.dims<D>>
!D_N = tensor<64x256xf16, #compound.dims<D, N>>
!T_N = tensor<128x256xf16, #compound.dims<T, N>>
!T_f32 = tensor<128xf32, #compound.dims<T>>
!D_f32 = tensor<64xf32, #compound.dims<D>>
!T_D_f32 = tensor<128x64xf32, #compound.dims<T, D>>
!T_N_f32 = tensor<128x256xf32, #compound.dims<T, N>>
!number = tensor<f32, #compound.dims<>>
func.func @embedding(%table: !V_D, %ids: !T_i32, %gamma: !D, %w: !D_N) -> !T_N {
  %x = compound.gather %table, %ids along "V" : !V_D, !T_i32 -> !T_D
  %wide = compound.cast %x : !T_D -> !T_D_f32
  %square = compound.map mult %wide, %wide : !T_D_f32, !T_D_f32 -> !T_D_f32
  %sum = compound.reduce add %square : !T_D_f32 -> !T_f32
  %count = compound.fill 0.015625 : !number
  %mean = compound.map mult %sum, %count : !T_f32, !number -> !T_f32
  %epsilon = compound.fill 1.0e-05 : !number
  %safe = compound.map add %mean, %epsilon : !T_f32, !number -> !T_f32
  %scale = compound.map rsqrt %safe : !T_f32 -> !T_f32
  %normal = compound.map mult %wide, %scale : !T_D_f32, !T_f32 -> !T_D_f32
  %factors = compound.cast %gamma : !D -> !D_f32
  %scaled = compound.map mult %normal, %factors : !T_D_f32, !D_f32 -> !T_D_f32
  %h = compound.cast %scaled : !T_D_f32 -> !T_D
  %product = compound.contract %h, %w : !T_D, !D_N -> !T_N_f32
  %y = compound.cast %product : !T_N_f32 -> !T_N
  func.return %y : !T_N
}
