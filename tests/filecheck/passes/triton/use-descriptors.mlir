// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},fuse,tile{factors="c: M=2 N=1 warps=4 stages=3; c_k: K=2"},outline-kernels,materialize-copies,hoist-copies,mask-copies,use-descriptors' | filecheck %s

// Rows of 40 elements of f16 begin at multiples of 16 bytes; rows of 20 do not. Beyond
// the last of 40 rows, and of 40 summed elements, TMA reads zeros.

func.func @gemm(%a: tensor<40x40xf16>, %b: tensor<40x20xf16>) -> tensor<40x20xf16> {
  %c = compound.gemm %a, %b : (tensor<40x40xf16>, tensor<40x20xf16>) -> tensor<40x20xf16>
  func.return %c : tensor<40x20xf16>
}

// CHECK:      schedule.copy %a{{.*}} mask ["M", "K"] descriptor : {{.*}} @SMEM>>
// CHECK-NEXT: schedule.copy %b{{.*}} mask ["K", "N"] : {{.*}} @SMEM>>

// Products in f32 have no matrix instructions that would read what descriptors copy.

func.func @gemm_f32(%a: tensor<40x40xf32>, %b: tensor<40x20xf32>) -> tensor<40x20xf32> {
  %c = compound.gemm %a, %b : (tensor<40x40xf32>, tensor<40x20xf32>) -> tensor<40x20xf32>
  func.return %c : tensor<40x20xf32>
}

// CHECK:      schedule.copy %a{{.*}} mask ["M", "K"] : {{.*}} @SMEM>>
