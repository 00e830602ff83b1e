// RUN:

func.func @main(%a: tensor<4xf16, #compound.dims<M>>) -> tensor<4xf16, #compound.dims<M>> {
  %b = tl.plan ranks 0 ins(%a : tensor<4xf16, #compound.dims<M>>) split ["M"] to ["M"] {
  ^bb0(%c: tensor<4xf16, #compound.dims<M>>):
    tl.plan_yield %c : tensor<4xf16, #compound.dims<M>>
  } -> tensor<4xf16, #compound.dims<M>>
  func.return %b : tensor<4xf16, #compound.dims<M>>
}
