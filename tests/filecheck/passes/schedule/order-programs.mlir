// RUN: comet-opt %s --split-input-file -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose{accumulator=f32},stream,fuse{strategy=full},tile' -o %t.mlir
// RUN: comet-opt %t.mlir --split-input-file -p order-programs | filecheck %s
// RUN: sed 's/group = 1>/group = 1, parts = 2>/' %t.mlir > %t.parts.mlir
// RUN: comet-opt %t.parts.mlir --split-input-file -p order-programs | filecheck %s --check-prefix PARTS
// RUN: comet-opt %t.mlir --split-input-file -p 'order-programs{order=index}' | filecheck %s --check-prefix INDEX
// RUN: comet-opt %s --split-input-file --explain -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full split=none specialize=false}' -t triton -o %t 2>&1 | filecheck %s --check-prefix EXPLAIN
// RUN: filecheck %s --check-prefix TRITON --input-file %t

// The last queries see most keys: their programs start first.

!x = tensor<2x16x2048x64xbf16>

func.func @causal(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v causal : (!x, !x, !x) -> !x
  func.return %o : !x
}

// CHECK-LABEL: func.func @causal
// CHECK:         on grid [g0: B = 2, g1: H = 16, g2: M = [[M:[0-9]+]], g3: E = 1] reversed ["M"] ins({{.*}}group = 16>

// PARTS:         reversed ["M"] {{.*}}group = 16, parts = 2>

// INDEX-LABEL: func.func @causal
// INDEX:         on grid [{{.*}}] reversed [] ins({{.*}}group = 1>

// TRITON-LABEL: def causal_kernel
// TRITON:         row, pid_m = tl.swizzle2d(tl.program_id(1), tl.program_id(0), 32, [[M:[0-9]+]], 16)
// TRITON:         from_last_m = {{[0-9]+}} - pid_m
// TRITON:         offs_m = from_last_m * BLOCK_M + tl.arange(0, BLOCK_M)

// EXPLAIN:      program order for @o
// EXPLAIN-NEXT:   candidate {{ *}}us  limited by
// EXPLAIN-NEXT:   longest
// EXPLAIN-NEXT:   index
// EXPLAIN-NEXT:   longest, 2 at a time
// EXPLAIN-NEXT:   longest, 4 at a time
// EXPLAIN-NEXT:   longest, 8 at a time
// EXPLAIN-NEXT: * longest, 16 at a time

// -----

// All programs run at the same time: it makes no difference.

!x = tensor<1x2x256x64xbf16>

func.func @one_wave(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v causal : (!x, !x, !x) -> !x
  func.return %o : !x
}

// CHECK-LABEL: func.func @one_wave
// CHECK:         on grid [{{.*}}] reversed [] ins(

// TRITON-LABEL: def one_wave_kernel
// TRITON-NOT:     from_last

// -----

// All programs are equally long.

!x = tensor<2x16x2048x64xbf16>

func.func @full(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v : (!x, !x, !x) -> !x
  func.return %o : !x
}

// CHECK-LABEL: func.func @full
// CHECK-NOT:     reversed
// CHECK:         func.return
