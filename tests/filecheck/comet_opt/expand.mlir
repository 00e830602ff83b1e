// RUN: comet-opt %s --expand -p 'attach-hardware{path="%S/../../../samples/hardware/edge.yaml"},comet-accelerator{strategy=full dim="N" bind=auto}' | filecheck %s
// RUN: comet-opt %s --expand -p 'decompose,cse' | filecheck %s --check-prefix=CHECK-OTHERS

func.func @main(%a: tensor<8x4xf16>, %b: tensor<4x32xf16>) -> tensor<8x32xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<8x4xf16>, tensor<4x32xf16>) -> tensor<8x32xf16>
  func.return %p : tensor<8x32xf16>
}

// The pipeline has become its passes, and what was `auto` what was chosen.

// CHECK: attach-hardware{path="{{.*}}edge.yaml"},decompose{accumulator=input},distribute{dim=N axes=cx,cy,kx,ky},insert-collectives,place-collectives{at=GB kind={{[a-z_]+}} algorithm=auto model=paper objective=latency},fuse{strategy=full {{.*}},tile{factors="{{.*}}" {{.*}}},bind{kind={{[a-z]+}} model=paper objective=latency},annotate-cost{model=paper},lower-to-comet
// CHECK-NOT: func.func

// CHECK-OTHERS: decompose{accumulator=f32},cse
// CHECK-OTHERS-NOT: {{.+}}
