// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},fuse{strategy=full loops=separate},tile{factors="c_gb: K=4; m_gb: M=2"}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},fuse{strategy=partial loops=separate},tile{factors="c_gb: K=4"}' | filecheck %s --check-prefix=PARTIAL

// The product has a loop of its own, which cuts K; its result stays in the cores, or in the shared buffer.

func.func @f(%a: tensor<8x16xf16, #compound.dims<M, K>>, %b: tensor<16x32xf16, #compound.dims<K, N>>) -> tensor<8xf16, #compound.dims<M>> {
  %c = compound.contract %a, %b : tensor<8x16xf16, #compound.dims<M, K>>, tensor<16x32xf16, #compound.dims<K, N>> -> tensor<8x32xf16, #compound.dims<M, N>>
  %m = compound.reduce max %c : tensor<8x32xf16, #compound.dims<M, N>> -> tensor<8xf16, #compound.dims<M>>
  func.return %m : tensor<8xf16, #compound.dims<M>>
}

// CHECK: schedule.spatial @m_cx_cy on @edge
// CHECK: %c = schedule.temporal @c_gb [K = 4] {{.*}} outs(tensor<8x32xf16, #compound.dims<M, N @OB>>) combine ["add"]
// CHECK: %m_2 = schedule.temporal @m_gb [M = 2] ins(%c : {{.*}}) outs(tensor<8xf16, #compound.dims<M @GB>>)
// PARTIAL: %c = schedule.temporal @c_gb [K = 4] {{.*}} outs(tensor<8x32xf16, #compound.dims<M, N @GB>>) combine ["add"]
