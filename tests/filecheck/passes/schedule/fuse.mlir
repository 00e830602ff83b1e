// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},fuse{strategy=full}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},fuse{strategy=none}' | filecheck %s --check-prefix=NONE

// One nest, or one nest for each op; the reduction over cores becomes a combiner.

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N>>) -> tensor<4x32xf16, #compound.dims<M, N>> {
  %y = collective.spmd on @edge ins(%x : tensor<4x32xf16, #compound.dims<M, N>>) sharded [{N = ["cx", "cy", "kx", "ky"]}] outs(tensor<4x32xf16, #compound.dims<M, N>>) sharded [{N = ["cx", "cy", "kx", "ky"]}] {
  ^bb0(%x_1: tensor<4x2xf16, #compound.dims<M, N>>):
    %m = compound.reduce max %x_1 : tensor<4x2xf16, #compound.dims<M, N>> -> tensor<4xf16, #compound.dims<M>>
    %m_1 = collective.all_reduce max %m on @edge ["kx", "ky"] from "OB" to "GB" : tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
    %m_2 = collective.all_reduce max %m_1 on @edge ["cx", "cy"] from "GB" to "GB" : tensor<4xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>
    %y_1 = compound.map sub %x_1, %m_2 : tensor<4x2xf16, #compound.dims<M, N>>, tensor<4xf16, #compound.dims<M>> -> tensor<4x2xf16, #compound.dims<M, N>>
    collective.yield %y_1 : tensor<4x2xf16, #compound.dims<M, N>>
  }
  func.return %y : tensor<4x32xf16, #compound.dims<M, N>>
}

// CHECK:      func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N @DRAM>>) -> tensor<4x32xf16, #compound.dims<M, N @DRAM>> {
// CHECK-NEXT:   %y = schedule.temporal @y_dram [] ins(%x : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:   ^bb0(%x_1: tensor<4x32xf16, #compound.dims<M, N @DRAM>>):
// CHECK-NEXT:     %y_1 = schedule.spatial @y_cx_cy on @edge [cx: N = 2, cy: N = 2] ins(%x_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:     ^bb0(%x_2: tensor<4x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:       %y_2 = schedule.temporal @y_gb [] ins(%x_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:       ^bb0(%x_3: tensor<4x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:         %m = schedule.spatial @m_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4xf16, #compound.dims<M @GB>>) combine ["max"] {
// CHECK-NEXT:         ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:           %m_1 = schedule.temporal @m_ob [] ins(%x_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>) outs(tensor<4xf16, #compound.dims<M @OB>>) {
// CHECK-NEXT:           ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:             %m_2 = compound.reduce max %x_5 : tensor<4x2xf16, #compound.dims<M, N @OB>> -> tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:             schedule.yield %m_2 : tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %m_1 : tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         %m_1 = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : tensor<4xf16, #compound.dims<M @GB>> -> tensor<4xf16, #compound.dims<M @GB>>
// CHECK-NEXT:         %y_3 = schedule.spatial @y_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3, %m_1 : tensor<4x8xf16, #compound.dims<M, N @GB>>, tensor<4xf16, #compound.dims<M @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:         ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_2: tensor<4xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:           %y_4 = schedule.temporal @y_ob [] ins(%x_4, %m_2 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>>) outs(tensor<4x2xf16, #compound.dims<M, N @OB>>) {
// CHECK-NEXT:           ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_3: tensor<4xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:             %y_5 = compound.map sub %x_5, %m_3 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>> -> tensor<4x2xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:             schedule.yield %y_5 : tensor<4x2xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %y_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         schedule.yield %y_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %y_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     schedule.yield %y_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return %y : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT: }

// NONE:      func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N @DRAM>>) -> tensor<4x32xf16, #compound.dims<M, N @DRAM>> {
// NONE-NEXT:   %m = schedule.temporal @m_dram [] ins(%x : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4xf16, #compound.dims<M @DRAM>>) {
// NONE-NEXT:   ^bb0(%x_1: tensor<4x32xf16, #compound.dims<M, N @DRAM>>):
// NONE-NEXT:     %m_1 = schedule.spatial @m_cx_cy on @edge [cx: N = 2, cy: N = 2] ins(%x_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4xf16, #compound.dims<M @DRAM>>) combine ["same"] {
// NONE-NEXT:     ^bb0(%x_2: tensor<4x8xf16, #compound.dims<M, N @GB>>):
// NONE-NEXT:       %m_2 = schedule.temporal @m_gb [] ins(%x_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4xf16, #compound.dims<M @GB>>) {
// NONE-NEXT:       ^bb0(%x_3: tensor<4x8xf16, #compound.dims<M, N @GB>>):
// NONE-NEXT:         %m_3 = schedule.spatial @m_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4xf16, #compound.dims<M @GB>>) combine ["max"] {
// NONE-NEXT:         ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>):
// NONE-NEXT:           %m_4 = schedule.temporal @m_ob [] ins(%x_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>) outs(tensor<4xf16, #compound.dims<M @OB>>) {
// NONE-NEXT:           ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>):
// NONE-NEXT:             %m_5 = compound.reduce max %x_5 : tensor<4x2xf16, #compound.dims<M, N @OB>> -> tensor<4xf16, #compound.dims<M @OB>>
// NONE-NEXT:             schedule.yield %m_5 : tensor<4xf16, #compound.dims<M @OB>>
// NONE-NEXT:           }
// NONE-NEXT:           schedule.yield %m_4 : tensor<4xf16, #compound.dims<M @OB>>
// NONE-NEXT:         }
// NONE-NEXT:         schedule.yield %m_3 : tensor<4xf16, #compound.dims<M @GB>>
// NONE-NEXT:       }
// NONE-NEXT:       %m_3 = collective.all_reduce max %m_2 on @edge ["cx", "cy"] from "GB" to "GB" : tensor<4xf16, #compound.dims<M @GB>> -> tensor<4xf16, #compound.dims<M @GB>>
// NONE-NEXT:       schedule.yield %m_3 : tensor<4xf16, #compound.dims<M @GB>>
// NONE-NEXT:     }
// NONE-NEXT:     schedule.yield %m_1 : tensor<4xf16, #compound.dims<M @DRAM>>
// NONE-NEXT:   }
// NONE-NEXT:   %y = schedule.temporal @y_dram [] ins(%x, %m : tensor<4x32xf16, #compound.dims<M, N @DRAM>>, tensor<4xf16, #compound.dims<M @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
// NONE-NEXT:   ^bb0(%x_1: tensor<4x32xf16, #compound.dims<M, N @DRAM>>, %m_1: tensor<4xf16, #compound.dims<M @DRAM>>):
// NONE-NEXT:     %y_1 = schedule.spatial @y_cx_cy on @edge [cx: N = 2, cy: N = 2] ins(%x_1, %m_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>, tensor<4xf16, #compound.dims<M @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
// NONE-NEXT:     ^bb0(%x_2: tensor<4x8xf16, #compound.dims<M, N @GB>>, %m_2: tensor<4xf16, #compound.dims<M @GB>>):
// NONE-NEXT:       %y_2 = schedule.temporal @y_gb [] ins(%x_2, %m_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>, tensor<4xf16, #compound.dims<M @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
// NONE-NEXT:       ^bb0(%x_3: tensor<4x8xf16, #compound.dims<M, N @GB>>, %m_3: tensor<4xf16, #compound.dims<M @GB>>):
// NONE-NEXT:         %y_3 = schedule.spatial @y_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3, %m_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>, tensor<4xf16, #compound.dims<M @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
// NONE-NEXT:         ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_4: tensor<4xf16, #compound.dims<M @OB>>):
// NONE-NEXT:           %y_4 = schedule.temporal @y_ob [] ins(%x_4, %m_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>>) outs(tensor<4x2xf16, #compound.dims<M, N @OB>>) {
// NONE-NEXT:           ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_5: tensor<4xf16, #compound.dims<M @OB>>):
// NONE-NEXT:             %y_5 = compound.map sub %x_5, %m_5 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>> -> tensor<4x2xf16, #compound.dims<M, N @OB>>
// NONE-NEXT:             schedule.yield %y_5 : tensor<4x2xf16, #compound.dims<M, N @OB>>
// NONE-NEXT:           }
// NONE-NEXT:           schedule.yield %y_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>
// NONE-NEXT:         }
// NONE-NEXT:         schedule.yield %y_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>
// NONE-NEXT:       }
// NONE-NEXT:       schedule.yield %y_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>
// NONE-NEXT:     }
// NONE-NEXT:     schedule.yield %y_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
// NONE-NEXT:   }
// NONE-NEXT:   func.return %y : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
// NONE-NEXT: }
