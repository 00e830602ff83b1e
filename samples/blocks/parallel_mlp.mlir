// A gated MLP on 4 ranks: tokens are shared in the norm, columns in the MLP.

!MD_f32 = tensor<8x8xf32, #compound.dims<M, D>>
!M_f32 = tensor<8xf32, #compound.dims<M>>
!number_f32 = tensor<f32, #compound.dims<>>
!D_f32 = tensor<8xf32, #compound.dims<D>>
!DF_f32 = tensor<8x16xf32, #compound.dims<D, F>>
!MF_f32 = tensor<8x16xf32, #compound.dims<M, F>>
!FD_f32 = tensor<16x8xf32, #compound.dims<F, D>>
func.func @parallel_mlp(%x: !MD_f32 {collective.shard = {M = ["rank"]}}, %h_g: !D_f32, %w1: !DF_f32 {collective.shard = {F = ["rank"]}}, %w3: !DF_f32 {collective.shard = {F = ["rank"]}}, %w2: !FD_f32 {collective.shard = {F = ["rank"]}}) -> (!MD_f32 {collective.shard = {M = ["rank"]}}) {
  %h_sq = compound.map mult %x, %x : !MD_f32, !MD_f32 -> !MD_f32
  %h_sum = compound.reduce add %h_sq : !MD_f32 -> !M_f32
  %h_n = compound.fill 0.125 : !number_f32
  %h_mean = compound.map mult %h_sum, %h_n : !M_f32, !number_f32 -> !M_f32
  %h_eps = compound.fill 1.0e-05 : !number_f32
  %h_safe = compound.map add %h_mean, %h_eps : !M_f32, !number_f32 -> !M_f32
  %h_scale = compound.map rsqrt %h_safe : !M_f32 -> !M_f32
  %h_scaled = compound.map mult %x, %h_scale : !MD_f32, !M_f32 -> !MD_f32
  %h = compound.map mult %h_scaled, %h_g : !MD_f32, !D_f32 -> !MD_f32
  %gate = compound.contract %h, %w1 : !MD_f32, !DF_f32 -> !MF_f32
  %up = compound.contract %h, %w3 : !MD_f32, !DF_f32 -> !MF_f32
  %minus = compound.map neg %gate : !MF_f32 -> !MF_f32
  %e = compound.map exp %minus : !MF_f32 -> !MF_f32
  %one = compound.fill 1.0 : !number_f32
  %bottom = compound.map add %e, %one : !MF_f32, !number_f32 -> !MF_f32
  %silu = compound.map div %gate, %bottom : !MF_f32, !MF_f32 -> !MF_f32
  %gated = compound.map mult %silu, %up : !MF_f32, !MF_f32 -> !MF_f32
  %d = compound.contract %gated, %w2 : !MF_f32, !FD_f32 -> !MD_f32
  %z = compound.map add %x, %d : !MD_f32, !MD_f32 -> !MD_f32
  func.return %z : !MD_f32
}
