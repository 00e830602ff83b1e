// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},tile{factors="y_dram: M=2; y_ob: N=2"}' | filecheck %s

// Rows for the nodes that a plan names; all types below follow.

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N @DRAM>>) -> tensor<4x32xf16, #compound.dims<M, N @DRAM>> {
  %y = schedule.temporal [] ins(%x : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
  ^bb0(%x_1: tensor<4x32xf16, #compound.dims<M, N @DRAM>>):
    %y_1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%x_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
    ^bb0(%x_2: tensor<4x8xf16, #compound.dims<M, N @GB>>):
      %y_2 = schedule.temporal [] ins(%x_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
      ^bb0(%x_3: tensor<4x8xf16, #compound.dims<M, N @GB>>):
        %m = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>) outs(tensor<4xf16, #compound.dims<M @GB>>) combine ["max"] {
        ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>):
          %m_1 = schedule.temporal [] ins(%x_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>) outs(tensor<4xf16, #compound.dims<M @OB>>) {
          ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>):
            %m_2 = compound.reduce max %x_5 : tensor<4x2xf16, #compound.dims<M, N @OB>> -> tensor<4xf16, #compound.dims<M @OB>>
            schedule.yield %m_2 : tensor<4xf16, #compound.dims<M @OB>>
          }
          schedule.yield %m_1 : tensor<4xf16, #compound.dims<M @OB>>
        }
        %m_1 = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : tensor<4xf16, #compound.dims<M @GB>> -> tensor<4xf16, #compound.dims<M @GB>>
        %y_3 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_3, %m_1 : tensor<4x8xf16, #compound.dims<M, N @GB>>, tensor<4xf16, #compound.dims<M @GB>>) outs(tensor<4x8xf16, #compound.dims<M, N @GB>>) {
        ^bb0(%x_4: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_2: tensor<4xf16, #compound.dims<M @OB>>):
          %y_4 = schedule.temporal [] ins(%x_4, %m_2 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>>) outs(tensor<4x2xf16, #compound.dims<M, N @OB>>) {
          ^bb0(%x_5: tensor<4x2xf16, #compound.dims<M, N @OB>>, %m_3: tensor<4xf16, #compound.dims<M @OB>>):
            %y_5 = compound.map sub %x_5, %m_3 : tensor<4x2xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>> -> tensor<4x2xf16, #compound.dims<M, N @OB>>
            schedule.yield %y_5 : tensor<4x2xf16, #compound.dims<M, N @OB>>
          }
          schedule.yield %y_4 : tensor<4x2xf16, #compound.dims<M, N @OB>>
        }
        schedule.yield %y_3 : tensor<4x8xf16, #compound.dims<M, N @GB>>
      }
      schedule.yield %y_2 : tensor<4x8xf16, #compound.dims<M, N @GB>>
    }
    schedule.yield %y_1 : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
  }
  func.return %y : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
}

// CHECK:      func.func @f(%x: tensor<4x32xf16, #compound.dims<M, N @DRAM>>) -> tensor<4x32xf16, #compound.dims<M, N @DRAM>> attributes {comet.plan = "y_dram: M=2; y_ob: N=2"} {
// CHECK-NEXT:   %y = schedule.temporal @y_dram [M = 2] ins(%x : tensor<4x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x32xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:   ^bb0(%x_1: tensor<2x32xf16, #compound.dims<M, N @DRAM>>):
// CHECK-NEXT:     %y_1 = schedule.spatial @y_cx_cy on @edge [cx: N = 2, cy: N = 2] ins(%x_1 : tensor<2x32xf16, #compound.dims<M, N @DRAM>>) outs(tensor<2x32xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:     ^bb0(%x_2: tensor<2x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:       %y_2 = schedule.temporal @y_gb [] ins(%x_2 : tensor<2x8xf16, #compound.dims<M, N @GB>>) outs(tensor<2x8xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:       ^bb0(%x_3: tensor<2x8xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:         %m = schedule.spatial @m_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3 : tensor<2x8xf16, #compound.dims<M, N @GB>>) outs(tensor<2xf16, #compound.dims<M @GB>>) combine ["max"] {
// CHECK-NEXT:         ^bb0(%x_4: tensor<2x2xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:           %m_1 = schedule.temporal @m_ob [] ins(%x_4 : tensor<2x2xf16, #compound.dims<M, N @OB>>) outs(tensor<2xf16, #compound.dims<M @OB>>) {
// CHECK-NEXT:           ^bb0(%x_5: tensor<2x2xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:             %m_2 = compound.reduce max %x_5 : tensor<2x2xf16, #compound.dims<M, N @OB>> -> tensor<2xf16, #compound.dims<M @OB>>
// CHECK-NEXT:             schedule.yield %m_2 : tensor<2xf16, #compound.dims<M @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %m_1 : tensor<2xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         %m_1 = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : tensor<2xf16, #compound.dims<M @GB>> -> tensor<2xf16, #compound.dims<M @GB>>
// CHECK-NEXT:         %y_3 = schedule.spatial @y_kx_ky on @edge [kx: N = 2, ky: N = 2] ins(%x_3, %m_1 : tensor<2x8xf16, #compound.dims<M, N @GB>>, tensor<2xf16, #compound.dims<M @GB>>) outs(tensor<2x8xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:         ^bb0(%x_4: tensor<2x2xf16, #compound.dims<M, N @OB>>, %m_2: tensor<2xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:           %y_4 = schedule.temporal @y_ob [N = 2] ins(%x_4, %m_2 : tensor<2x2xf16, #compound.dims<M, N @OB>>, tensor<2xf16, #compound.dims<M @OB>>) outs(tensor<2x2xf16, #compound.dims<M, N @OB>>) {
// CHECK-NEXT:           ^bb0(%x_5: tensor<2x1xf16, #compound.dims<M, N @OB>>, %m_3: tensor<2xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:             %y_5 = compound.map sub %x_5, %m_3 : tensor<2x1xf16, #compound.dims<M, N @OB>>, tensor<2xf16, #compound.dims<M @OB>> -> tensor<2x1xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:             schedule.yield %y_5 : tensor<2x1xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %y_4 : tensor<2x2xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         schedule.yield %y_3 : tensor<2x8xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %y_2 : tensor<2x8xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     schedule.yield %y_1 : tensor<2x32xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return %y : tensor<4x32xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT: }
