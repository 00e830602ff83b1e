// RUN: comet-opt %s -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},decompose,fuse{strategy=none},tile,outline-kernels' -t taxes | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%S/../../../samples/hardware/h200x1.yaml"},decompose,fuse{strategy=none},tile,outline-kernels' -t 'taxes{trace="%t.json"}' && filecheck %s --check-prefix CHECK-TRACE < %t.json

func.func @f(%a: tensor<256x128xf16>, %b: tensor<128x512xf16>) -> tensor<256x512xf16> {
  %c = compound.gemm_softmax %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>) -> tensor<256x512xf16>
  func.return %c : tensor<256x512xf16>
}

// CHECK:      @f on 1 rank of @h200x1: {{[0-9.]+}} us
// CHECK:      step {{ *}} busy {{ *}} launch {{ *}} synchronization {{ *}} locality {{ *}} total {{ *}} intermediates
// CHECK-NEXT: f_c_kernel {{ *}} {{[0-9.]+}} us {{ *}} 4.00 us {{ *}} 0.00 us {{ *}} {{[0-9.]+}} us {{ *}} {{[0-9.]+}} us {{ *}} {{[0-9.,]+}} kB
// CHECK:      total
// CHECK-NEXT: fraction {{.*}} 100.0 %
// CHECK:      by the model of the three taxes (docs/multi-gpu-model.md), without energy

// CHECK-TRACE:      {"traceEvents": [{"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "@f on 1 rank of @h200x1"}}
// CHECK-TRACE-SAME: {"name": "f_c_kernel: launch", "cat": "launch", "ph": "X", "ts": 0.0, "dur": 4.0, "pid": 0, "tid": 0
