// RUN:

func.func @main(%c: tensor<8x12xf16, #compound.dims<M, N @GB>>) {
  %m = schedule.temporal [N = 3] ins(%c : tensor<8x12xf16, #compound.dims<M, N @GB>>) outs(tensor<8xf16, #compound.dims<M @GB>>) {
  ^bb0(%t: tensor<8x4xf16, #compound.dims<M, N @OB>>):
    %m = compound.reduce max %t : tensor<8x4xf16, #compound.dims<M, N @OB>> -> tensor<8xf16, #compound.dims<M @OB>>
    schedule.yield %m : tensor<8xf16, #compound.dims<M @OB>>
  }
  func.return
}
