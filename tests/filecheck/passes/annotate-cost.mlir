// RUN: comet-opt %s -p 'attach-hardware{path="%S/../../../samples/hardware/edge.yaml"},tile{factors="DRAM: M=2"},annotate-cost{model=ideal}' | filecheck %s --check-prefix=CHECK

// Estimates stand on the function and on its nodes.

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}
func.func @f(%s: tensor<8x64xf16, #compound.dims<M, N @DRAM>>) -> tensor<8x64xf16, #compound.dims<M, N @DRAM>> {
  %d = schedule.temporal [] ins(%s : tensor<8x64xf16, #compound.dims<M, N @DRAM>>) outs(tensor<8x64xf16, #compound.dims<M, N @DRAM>>) {
  ^bb0(%x: tensor<8x64xf16, #compound.dims<M, N @DRAM>>):
    %d_1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%x : tensor<8x64xf16, #compound.dims<M, N @DRAM>>) outs(tensor<8x64xf16, #compound.dims<M, N @DRAM>>) {
    ^bb0(%x_1: tensor<8x16xf16, #compound.dims<M, N @GB>>):
      %d_2 = schedule.temporal [] ins(%x_1 : tensor<8x16xf16, #compound.dims<M, N @GB>>) outs(tensor<8x16xf16, #compound.dims<M, N @GB>>) {
      ^bb0(%x_2: tensor<8x16xf16, #compound.dims<M, N @GB>>):
        %m = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_2 : tensor<8x16xf16, #compound.dims<M, N @GB>>) outs(tensor<8xf16, #compound.dims<M @GB>>) combine ["max"] {
        ^bb0(%x_3: tensor<8x4xf16, #compound.dims<M, N @OB>>):
          %m_1 = schedule.temporal [] ins(%x_3 : tensor<8x4xf16, #compound.dims<M, N @OB>>) outs(tensor<8xf16, #compound.dims<M @OB>>) {
          ^bb0(%x_4: tensor<8x4xf16, #compound.dims<M, N @OB>>):
            %m_2 = compound.reduce max %x_4 : tensor<8x4xf16, #compound.dims<M, N @OB>> -> tensor<8xf16, #compound.dims<M @OB>>
            schedule.yield %m_2 : tensor<8xf16, #compound.dims<M @OB>>
          }
          schedule.yield %m_1 : tensor<8xf16, #compound.dims<M @OB>>
        }
        %g = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : tensor<8xf16, #compound.dims<M @GB>> -> tensor<8xf16, #compound.dims<M @GB>>
        %d_3 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_2, %g : tensor<8x16xf16, #compound.dims<M, N @GB>>, tensor<8xf16, #compound.dims<M @GB>>) outs(tensor<8x16xf16, #compound.dims<M, N @GB>>) {
        ^bb0(%x_3: tensor<8x4xf16, #compound.dims<M, N @OB>>, %g_1: tensor<8xf16, #compound.dims<M @OB>>):
          %d_4 = schedule.temporal [] ins(%x_3, %g_1 : tensor<8x4xf16, #compound.dims<M, N @OB>>, tensor<8xf16, #compound.dims<M @OB>>) outs(tensor<8x4xf16, #compound.dims<M, N @OB>>) {
          ^bb0(%x_4: tensor<8x4xf16, #compound.dims<M, N @OB>>, %g_2: tensor<8xf16, #compound.dims<M @OB>>):
            %d_5 = compound.map sub %x_4, %g_2 : tensor<8x4xf16, #compound.dims<M, N @OB>>, tensor<8xf16, #compound.dims<M @OB>> -> tensor<8x4xf16, #compound.dims<M, N @OB>>
            schedule.yield %d_5 : tensor<8x4xf16, #compound.dims<M, N @OB>>
          }
          schedule.yield %d_4 : tensor<8x4xf16, #compound.dims<M, N @OB>>
        }
        schedule.yield %d_3 : tensor<8x16xf16, #compound.dims<M, N @GB>>
      }
      schedule.yield %d_2 : tensor<8x16xf16, #compound.dims<M, N @GB>>
    }
    schedule.yield %d_1 : tensor<8x64xf16, #compound.dims<M, N @DRAM>>
  }
  func.return %d : tensor<8x64xf16, #compound.dims<M, N @DRAM>>
}

// CHECK:      func.func @f(%s: tensor<8x64xf16, #compound.dims<M, N @DRAM>>) -> tensor<8x64xf16, #compound.dims<M, N @DRAM>> attributes {comet.plan = "DRAM: M=2", comet.cost = #cost.estimate<ideal, cycles, latency = 81.92, energy = 206531.815, compulsory_stalls = 0, optional_stalls = 71.92, memory_window = 10>} {
// CHECK-NEXT:   %d = schedule.temporal [M = 2] ins(%s : tensor<8x64xf16, #compound.dims<M, N @DRAM>>) outs(tensor<8x64xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:   ^bb0(%x: tensor<4x64xf16, #compound.dims<M, N @DRAM>>):
// CHECK-NEXT:     %d_1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%x : tensor<4x64xf16, #compound.dims<M, N @DRAM>>) outs(tensor<4x64xf16, #compound.dims<M, N @DRAM>>) {
// CHECK-NEXT:     ^bb0(%x_1: tensor<4x16xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:       %d_2 = schedule.temporal [] ins(%x_1 : tensor<4x16xf16, #compound.dims<M, N @GB>>) outs(tensor<4x16xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:       ^bb0(%x_2: tensor<4x16xf16, #compound.dims<M, N @GB>>):
// CHECK-NEXT:         %m = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_2 : tensor<4x16xf16, #compound.dims<M, N @GB>>) outs(tensor<4xf16, #compound.dims<M @GB>>) combine ["max"] {
// CHECK-NEXT:         ^bb0(%x_3: tensor<4x4xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:           %m_1 = schedule.temporal [] ins(%x_3 : tensor<4x4xf16, #compound.dims<M, N @OB>>) outs(tensor<4xf16, #compound.dims<M @OB>>) {
// CHECK-NEXT:           ^bb0(%x_4: tensor<4x4xf16, #compound.dims<M, N @OB>>):
// CHECK-NEXT:             %m_2 = compound.reduce max %x_4 : tensor<4x4xf16, #compound.dims<M, N @OB>> -> tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:             schedule.yield %m_2 : tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %m_1 : tensor<4xf16, #compound.dims<M @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         %g = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : tensor<4xf16, #compound.dims<M @GB>> -> tensor<4xf16, #compound.dims<M @GB>>
// CHECK-NEXT:         %d_3 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%x_2, %g : tensor<4x16xf16, #compound.dims<M, N @GB>>, tensor<4xf16, #compound.dims<M @GB>>) outs(tensor<4x16xf16, #compound.dims<M, N @GB>>) {
// CHECK-NEXT:         ^bb0(%x_3: tensor<4x4xf16, #compound.dims<M, N @OB>>, %g_1: tensor<4xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:           %d_4 = schedule.temporal [] ins(%x_3, %g_1 : tensor<4x4xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>>) outs(tensor<4x4xf16, #compound.dims<M, N @OB>>) {
// CHECK-NEXT:           ^bb0(%x_4: tensor<4x4xf16, #compound.dims<M, N @OB>>, %g_2: tensor<4xf16, #compound.dims<M @OB>>):
// CHECK-NEXT:             %d_5 = compound.map sub %x_4, %g_2 : tensor<4x4xf16, #compound.dims<M, N @OB>>, tensor<4xf16, #compound.dims<M @OB>> -> tensor<4x4xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:             schedule.yield %d_5 : tensor<4x4xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:           }
// CHECK-NEXT:           schedule.yield %d_4 : tensor<4x4xf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:         }
// CHECK-NEXT:         schedule.yield %d_3 : tensor<4x16xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:       }
// CHECK-NEXT:       schedule.yield %d_2 : tensor<4x16xf16, #compound.dims<M, N @GB>>
// CHECK-NEXT:     }
// CHECK-NEXT:     schedule.yield %d_1 : tensor<4x64xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return %d : tensor<8x64xf16, #compound.dims<M, N @DRAM>>
// CHECK-NEXT: }
