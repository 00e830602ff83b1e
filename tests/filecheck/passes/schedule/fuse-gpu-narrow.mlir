// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=none narrow=c}' | filecheck %s

// The product is stored as f16, and widened by the kernel that reads it.

func.func @halves(%a: tensor<32x16xf16, #compound.dims<M, K>>, %b: tensor<16x64xf16, #compound.dims<K, N>>) -> tensor<32xf32, #compound.dims<M>> {
  %c = compound.contract %a, %b : tensor<32x16xf16, #compound.dims<M, K>>, tensor<16x64xf16, #compound.dims<K, N>> -> tensor<32x64xf32, #compound.dims<M, N>>
  %l = compound.reduce add %c : tensor<32x64xf32, #compound.dims<M, N>> -> tensor<32xf32, #compound.dims<M>>
  func.return %l : tensor<32xf32, #compound.dims<M>>
}

// CHECK:      func.func @halves
// CHECK-SAME: comet.narrow = "c"
// CHECK:        %c = schedule.spatial @c on grid
// CHECK-SAME:     outs(tensor<32x64xf16, #compound.dims<M, N @HBM>>)
// CHECK:          %c_wide_1 = compound.contract
// CHECK:          %c_1 = compound.cast %c_wide : tensor<32x64xf32, #compound.dims<M, N @REG>> -> tensor<32x64xf16, #compound.dims<M, N @REG>>
// CHECK-NEXT:     schedule.yield %c_1 : tensor<32x64xf16, #compound.dims<M, N @REG>>
// CHECK:        %l = schedule.spatial @l on grid [g0: M = 1] ins(%c : tensor<32x64xf16, #compound.dims<M, N @HBM>>)
// CHECK:            %c_wide = compound.cast %c_2 : tensor<32x64xf16, #compound.dims<M, N @REG>> -> tensor<32x64xf32, #compound.dims<M, N @REG>>
// CHECK-NEXT:       %l_2 = compound.reduce add %c_wide
