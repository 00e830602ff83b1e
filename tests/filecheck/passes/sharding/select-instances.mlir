// RUN: comet-opt %s --split-input-file -p 'select-instances{axes="cy=1,cx=3"}' | filecheck %s

// Of 4 by 2 instances 3 by 1 are used, of all levels that span the axes; the sentence
// that another pass has written stays.

// CHECK:      arch.system @e attributes {arch.left_out = "before; 3 of the 8 instances of GB are used"}
// CHECK:      arch.level @GB "[0..2]" : "GBuffer" by connects link {meshX = 3, meshY = 1, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} axes ["cx", "cy"]
// CHECK:      arch.level @OB : "GBuffer" by drains link {meshX = 4, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1}
// CHECK:      collective.mesh @e {cx = 3, cy = 1}

arch.system @e attributes {arch.left_out = "before"} {
  arch.memory "GBuffer" {width = 128, depth = 4096}
  arch.memory "DRAM" {bw = 128, width = 8}
  arch.level @DRAM : "DRAM" {
    arch.level @GB "[0..7]" : "GBuffer" by connects link {meshX = 4, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} axes ["cx", "cy"] {
      arch.level @OB : "GBuffer" by drains link {meshX = 4, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} {
      }
    }
  }
}
collective.mesh @e {cx = 4, cy = 2} at {cx = "GB", cy = "GB"}
