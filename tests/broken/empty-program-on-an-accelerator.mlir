// RUN: attach-hardware{path="%hardware/edge.yaml"},fuse{strategy=full},lower-to-comet
collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}
func.func @main(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>> {
  %y = "collective.spmd"(%x) <{mesh = @edge, in_shardings = [{N = ["cx", "cy", "kx", "ky"]}], out_shardings = [{N = ["cx", "cy", "kx", "ky"]}]}> ({
  ^bb0(%x_1: tensor<4x2xf16, #compound.dims<M, N>>):
    "collective.yield"(%x_1) : (tensor<4x2xf16, #compound.dims<M, N>>) -> ()
  }) : (tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>>
  func.return %y : tensor<4x32xf16, #compound.dims<M, N>>
}
