// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},distribute{dim=K axes=cx},insert-collectives,place-collectives{at="GB"},fuse{strategy=isolate_contractions}' | filecheck %s

// The axes cy, kx and ky idle: they split nothing, although their rows name a dimension that is reduced.

func.func @f(%x: tensor<16xf32, #compound.dims<K>>) -> tensor<16xf32, #compound.dims<K>> {
  %m = compound.reduce max %x : tensor<16xf32, #compound.dims<K>> -> tensor<f32, #compound.dims<>>
  %y = compound.map sub %x, %m : tensor<16xf32, #compound.dims<K>>, tensor<f32, #compound.dims<>> -> tensor<16xf32, #compound.dims<K>>
  func.return %y : tensor<16xf32, #compound.dims<K>>
}

// CHECK: schedule.spatial @{{[a-z]+}}_cx_cy on @edge [cx: K = 2, cy: K = 1]
// CHECK: schedule.spatial @{{[a-z]+}}_kx_ky on @edge [kx: K = 1, ky: K = 1] ins({{.*}}) outs(tensor<f32, #compound.dims<@GB>>) {
// CHECK: collective.all_reduce max %m on @edge ["cx"] from "GB" to "GB"
