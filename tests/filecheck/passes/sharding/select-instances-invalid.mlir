// RUN: comet-opt %s --verify-diagnostics -p 'select-instances{axes="cx=2"}' | filecheck %s

// CHECK: select-instances: 'collective.all_reduce' is written for the whole mesh; run select-instances before the program is sharded

arch.system @e {
  arch.memory "GBuffer" {width = 128, depth = 4096}
  arch.memory "DRAM" {bw = 128, width = 8}
  arch.level @DRAM : "DRAM" {
    arch.level @GB : "GBuffer" by connects link {meshX = 4, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} axes ["cx", "cy"] {
    }
  }
}
collective.mesh @e {cx = 4, cy = 2} at {cx = "GB", cy = "GB"}
func.func @f(%a: tensor<8xf32, #compound.dims<M>>) -> tensor<8xf32, #compound.dims<M>> {
  %0 = collective.all_reduce add %a on @e ["cx"] : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
  func.return %0 : tensor<8xf32, #compound.dims<M>>
}
