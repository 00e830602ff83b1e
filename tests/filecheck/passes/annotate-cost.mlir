// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},annotate-cost' | filecheck %s

// The estimate of the whole is on the function, those of nodes on the nodes.

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

// CHECK:      func.func @f({{.*}}attributes {comet.cost = #cost.estimate<paper, cycles, latency = 
// CHECK:      schedule.temporal [] ins(%x : {{.*}} attributes {comet.cost = #cost.estimate<paper, cycles, latency = 
// CHECK:      schedule.spatial on @edge [cx: N = 2, cy: N = 2] {{.*}} attributes {comet.cost = #cost.estimate<paper, cycles, latency = 
// CHECK:      collective.all_reduce max {{.*}}comet.cost = #cost.estimate<paper, cycles, latency = 
