// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

arch.system @tiny extra {vendor = "nobody", released = {year = 2024, parts = [1, 2.5, "b"], final}} {
  arch.compute "VSIMD" {computeOpC = 64, computeLatency = 16} extra {class = "simd"}
  arch.memory "Off" {width = 8, bw = 25}
  arch.memory "On" {width = 64, depth = 1024, doublebuffered = true}
  arch.gpu {clock_ghz = 1.5, multiprocessors = 4, tensor_tflops = {f16 = 100}, vector_tflops = {f32 = 1.25}, hbm_gb_per_s = 100, l2_bytes = 1048576, l2_gb_per_s = 500, link_gb_per_s = 50, link_latency_us = 1, launch_us = 4, barrier_us = 5, signal_us = 2}
  arch.level @DRAM : "Off" {
    arch.level @GB "[0..3]" : "On" by connects link {bw = 64, meshX = 2, meshY = 2, connection_type = "MeshNetwork"} extra {note = "x"} axes ["cx", "cy"] {
      arch.unit @SE : "VSIMD" by fills link {bw = 64, connection_type = "MeshNetwork"}
    }
  }
}

// CHECK:      arch.system @tiny extra {vendor = "nobody", released = {year = 2024, parts = [1, 2.5, "b"], final}} {
// CHECK-NEXT:   arch.compute "VSIMD" {computeOpC = 64, computeLatency = 16} extra {class = "simd"}
// CHECK-NEXT:   arch.memory "Off" {width = 8, bw = 25}
// CHECK-NEXT:   arch.memory "On" {width = 64, depth = 1024, doublebuffered = true}
// CHECK-NEXT:   arch.gpu {clock_ghz = 1.5, multiprocessors = 4, tensor_tflops = {f16 = 100}, vector_tflops = {f32 = 1.25}, hbm_gb_per_s = 100, l2_bytes = 1048576, l2_gb_per_s = 500, link_gb_per_s = 50, link_latency_us = 1, launch_us = 4, barrier_us = 5, signal_us = 2}
// CHECK-NEXT:   arch.level @DRAM : "Off" {
// CHECK-NEXT:     arch.level @GB "[0..3]" : "On" by connects link {bw = 64, meshX = 2, meshY = 2, connection_type = "MeshNetwork"} extra {note = "x"} axes ["cx", "cy"] {
// CHECK-NEXT:       arch.unit @SE : "VSIMD" by fills link {bw = 64, connection_type = "MeshNetwork"}

// CHECK-GENERIC: "arch.level"() <{label = "GB", range = "[0..3]", kind = "On", path = #arch<path connects>, link = {bw = 64 : i64, meshX = 2 : i64
