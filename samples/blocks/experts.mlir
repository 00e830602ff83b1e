// A mixture of experts with slots, of the widths of Mixtral 8x7B.

!TD_f32 = tensor<6x8xf32, #compound.dims<T, D>>
!DX_f32 = tensor<8x4xf32, #compound.dims<D, X>>
!TX_f32 = tensor<6x4xf32, #compound.dims<T, X>>
!T_f32 = tensor<6xf32, #compound.dims<T>>
!TXC_f32 = tensor<6x4x3xf32, #compound.dims<T, X, C>>
!XCD_f32 = tensor<4x3x8xf32, #compound.dims<X, C, D>>
!XDF_f32 = tensor<4x8x12xf32, #compound.dims<X, D, F>>
!XCF_f32 = tensor<4x3x12xf32, #compound.dims<X, C, F>>
!number_f32 = tensor<f32, #compound.dims<>>
!XFD_f32 = tensor<4x12x8xf32, #compound.dims<X, F, D>>
func.func @experts(%x: !TD_f32, %sent: !TXC_f32, %wr: !DX_f32, %w1: !XDF_f32, %w3: !XDF_f32, %w2: !XFD_f32) -> (!TD_f32) {
  %logits = compound.contract %x, %wr : !TD_f32, !DX_f32 -> !TX_f32
  %shares_m = compound.reduce max %logits : !TX_f32 -> !T_f32
  %shares_s = compound.map sub %logits, %shares_m : !TX_f32, !T_f32 -> !TX_f32
  %shares_e = compound.map exp %shares_s : !TX_f32 -> !TX_f32
  %shares_l = compound.reduce add %shares_e : !TX_f32 -> !T_f32
  %shares = compound.map div %shares_e, %shares_l : !TX_f32, !T_f32 -> !TX_f32
  %slots = compound.contract %sent, %x : !TXC_f32, !TD_f32 -> !XCD_f32
  %gate = compound.contract %slots, %w1 : !XCD_f32, !XDF_f32 -> !XCF_f32
  %up = compound.contract %slots, %w3 : !XCD_f32, !XDF_f32 -> !XCF_f32
  %minus = compound.map neg %gate : !XCF_f32 -> !XCF_f32
  %e = compound.map exp %minus : !XCF_f32 -> !XCF_f32
  %one = compound.fill 1.0 : !number_f32
  %bottom = compound.map add %e, %one : !XCF_f32, !number_f32 -> !XCF_f32
  %silu = compound.map div %gate, %bottom : !XCF_f32, !XCF_f32 -> !XCF_f32
  %gated = compound.map mult %silu, %up : !XCF_f32, !XCF_f32 -> !XCF_f32
  %made = compound.contract %gated, %w2 : !XCF_f32, !XFD_f32 -> !XCD_f32
  %back = compound.map mult %sent, %shares : !TXC_f32, !TX_f32 -> !TXC_f32
  %mixed = compound.contract %back, %made : !TXC_f32, !XCD_f32 -> !TD_f32
  %y = compound.map add %x, %mixed : !TD_f32, !TD_f32 -> !TD_f32
  func.return %y : !TD_f32
}
