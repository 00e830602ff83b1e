// RUN: comet-opt %s --explain -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed' -o %t 2>&1 | filecheck %s --check-prefix EXPLAIN
// RUN: filecheck %s --input-file %t
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full factors="o: B=4 H=32 M=64 E=1 warps=4 stages=2 specialize=1; m_n: N=32; products_d: D=1"}' 2>&1 | filecheck %s --check-prefix ROWS
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full factors="o: B=4 H=32 M=32 E=1 warps=4 stages=3 specialize=1; m_n: N=64; products_d: D=1"}' 2>&1 | filecheck %s --check-prefix STAGES
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/mi300x8.yaml"},triton-distributed{strategy=full factors="o: B=4 H=32 M=32 E=1 warps=4 stages=2 specialize=1; m_n: N=64; products_d: D=1"}' 2>&1 | filecheck %s --check-prefix NONE
// RUN: comet-opt %s --explain -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full specialize=true factors="o: B=4 H=32 M=32 E=1 warps=8 stages=3; m_n: N=64; products_d: D=1"}' -o %t 2>&1 | filecheck %s --check-prefix LEFT

!x = tensor<4x32x4096x128xbf16>

func.func @attention(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v : (!x, !x, !x) -> !x
  func.return %o : !x
}

// Fusion counts on these warps: without them, two kernels are as fast as one.
// EXPLAIN: strategy for @attention
// EXPLAIN: * full 1,
// EXPLAIN: warps for @o
// EXPLAIN: all load
// EXPLAIN: * some load, B=1 H=1 M=128 E=128 N=128 D=128
// EXPLAIN: * 132 programs
// CHECK: tl.make_descriptor
// CHECK: tl.for warp_specialize %n : i32
// CHECK: specialize=1
// ROWS: tile: with specialize=1 a kernel has 128 rows
// STAGES: specialize-warps: the loop has 3 stages, and results are wrong with more than stages=2
// NONE: tile: with specialize=1 producer warps load, and the GPU has no numbers for them; leave specialize out, or say `specialized` in its hardware file
// LEFT: specialize for @o
// LEFT: programs have 8 warps, and Triton needs warps=4
