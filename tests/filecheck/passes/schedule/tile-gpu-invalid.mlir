// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose,fuse,tile{factors="c: M=1 N=1"}' | filecheck %s

// Blocks are powers of two: 1024 of the 700 summed elements do not fit shared memory.

func.func @main(%a: tensor<128x700xf16>, %b: tensor<700x16xf16>) -> tensor<128x16xf16> {
  %c = compound.gemm %a, %b : (tensor<128x700xf16>, tensor<700x16xf16>) -> tensor<128x16xf16>
  func.return %c : tensor<128x16xf16>
}

// CHECK: tile: the kernel that makes %c needs {{[0-9]+}} bytes of REG and {{[0-9]+}} bytes of SMEM, more than the 262144 and 232448 bytes there; raise its factors, take fewer stages, or fuse less
