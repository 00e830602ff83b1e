// RUN:

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}
func.func @main(%x: tensor<8xf16, #compound.dims<M>>) {
  %r = collective.all_reduce add %x on @edge ["cz"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>
  func.return
}
