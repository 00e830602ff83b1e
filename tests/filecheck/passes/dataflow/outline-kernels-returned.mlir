// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},lower-views,fuse{strategy=none},tile,outline-kernels' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{to=dataflow},lower-to-triton' | filecheck %s --check-prefix TL

// A result with another shape is the memory that a kernel stores: no kernel copies it.
func.func @f(%x: tensor<4x6xf32, #compound.dims<M, N>>) -> tensor<24xf32, #compound.dims<E>> {
  %y = compound.map exp %x : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<4x6xf32, #compound.dims<M, N>>
  %e = compound.rename %y merge "M" : tensor<4x6xf32, #compound.dims<M, N>> -> tensor<24xf32, #compound.dims<E>>
  func.return %e : tensor<24xf32, #compound.dims<E>>
}

// CHECK:       %y_1 = dataflow.kernel @f_kernel
// CHECK-NOT:   dataflow.kernel
// CHECK:       %e_1 = compound.rename %y_1 merge "M"
// CHECK-NEXT:  dataflow.yield %e_1

// TL:          tl.launch @f_kernel
// TL-NEXT:     %{{.*}} = tl.view %y : tensor<4x6xf32, {{.*}}> -> tensor<24xf32, {{.*}}>
// TL-NEXT:     func.return
