// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"}' | filecheck %s --check-prefix=GPU

func.func @untouched(%x: tensor<8xf32>) -> tensor<8xf32> {
  func.return %x : tensor<8xf32>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   arch.system @edge {
// CHECK:          arch.memory "GBuffer" {width = 2048, depth = 1024,
// CHECK:          arch.level @DRAM : "DRAM" {
// CHECK-NEXT:       arch.level @GB "[0..3]" : "GBuffer" by connects link {meshX = 2, meshY = 2,
// CHECK-SAME:         axes ["cx", "cy"] {
// CHECK-NEXT:         arch.level @IB "[0..3]" : "InputBuffer" by fills
// CHECK-NEXT:           arch.unit @GEMMEngine : "SystolicArray" by fills
// CHECK:              arch.level @OB "[0..3]" : "OutputBuffer" by drains
// CHECK-NEXT:           arch.unit @GEMMEngine : "SystolicArray" by drains
// CHECK-NEXT:           arch.unit @SE : "VSIMD" by connects
// CHECK:        collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}
// CHECK-NEXT:   func.func @untouched(%x: tensor<8xf32>) -> tensor<8xf32> {

// GPU:       arch.system @h200x8 {
// GPU:         arch.gpu {clock_ghz = 1.83, multiprocessors = 132,
// GPU-NEXT:    arch.level @HBM : "HBM" link {meshX = 8, meshY = 1} axes ["rank"] {
// GPU:         arch.level @SMEM
// GPU:         arch.level @REG
// GPU:       collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
