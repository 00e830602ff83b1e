// RUN:
func.func @main(%a: tensor<4xf32, #compound.dims<M @HBM>>) -> tensor<4xf32, #compound.dims<M @HBM>> {
  %c = schedule.temporal [M = 1] ins(%a : tensor<4xf32, #compound.dims<M @HBM>>) outs(tensor<4xf32, #compound.dims<M @HBM>>) {
  ^bb0(%x: tensor<4xf32, #compound.dims<M @REG>>):
    %y = compound.map exp %c : tensor<4xf32, #compound.dims<M @HBM>> -> tensor<4xf32, #compound.dims<M @HBM>>
    schedule.yield %x : tensor<4xf32, #compound.dims<M @REG>>
  }
  func.return %c : tensor<4xf32, #compound.dims<M @HBM>>
}
