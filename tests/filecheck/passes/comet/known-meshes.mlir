// RUN: comet-opt %s --split-input-file -p known-meshes | filecheck %s

// A mesh of 4 by 2 becomes one of 2 by 2, for all levels that have it; the axes follow.

// CHECK:      arch.system @e attributes {arch.left_out = "4 of the 8 instances of GB, OB are used, as the COMET tool knows no mesh of 4 by 2"}
// CHECK:      arch.level @GB "[0..3]" : "GBuffer" by connects link {meshX = 2, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} axes ["cx", "cy"]
// CHECK:      arch.level @OB : "GBuffer" by drains link {bw = 64, connection_type = "MeshNetwork", hop_latency = 1, meshX = 2, meshY = 2}
// CHECK:      collective.mesh @e {cx = 2, cy = 2}

arch.system @e {
  arch.memory "GBuffer" {width = 128, depth = 4096}
  arch.memory "DRAM" {bw = 128, width = 8}
  arch.level @DRAM : "DRAM" {
    arch.level @GB "[0..7]" : "GBuffer" by connects link {meshX = 4, meshY = 2, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} axes ["cx", "cy"] {
      arch.level @OB : "GBuffer" by drains link {bw = 64, connection_type = "MeshNetwork", hop_latency = 1, mesh = [4, 2]} {
      }
    }
  }
}
collective.mesh @e {cx = 4, cy = 2} at {cx = "GB", cy = "GB"}

// -----

// Every mesh is known: nothing changes.

// CHECK: arch.system @known {
// CHECK: arch.level @GB : "GBuffer" by connects link {meshX = 4, meshY = 4, bw = 64, connection_type = "MeshNetwork", hop_latency = 1}

arch.system @known {
  arch.memory "GBuffer" {width = 128, depth = 4096}
  arch.memory "DRAM" {bw = 128, width = 8}
  arch.level @DRAM : "DRAM" {
    arch.level @GB : "GBuffer" by connects link {meshX = 4, meshY = 4, bw = 64, connection_type = "MeshNetwork", hop_latency = 1} {
    }
  }
}
