// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full ctas=4 to=dataflow}' -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: comet-opt %t.mlir -p verify-sync | filecheck %s
// RUN: comet-opt %t.mlir -p 'triton-distributed{ctas=4}' -t triton | filecheck %s --check-prefix=TRITON

// Programs of a group keep their tile of the product until the statistics of all have arrived.

// CHECK:      %m_recv = dataflow.receive_buffer slots 1 on @h200x1 ["cta"] : {{.*}}gather cta_part : tensor<96xf32, {{.*}}> -> tensor<4x96xf32,
// CHECK-NEXT: %m_flags = dataflow.flags for %m_recv writers 4 : {{.*}}!dataflow.flags<1, [M = 6]>
// CHECK-NEXT: %l_recv = dataflow.receive_buffer slots 1 on @h200x1 ["cta"]
// CHECK:      dataflow.kernel @gemm_softmax_kernel {{.*}} coresident 4
// CHECK:      %epoch = dataflow.epoch
// CHECK:      schedule.spatial @p on grid [g0: M = 6]
// CHECK:      schedule.spatial @p_cta on @h200x1 [cta: N = 4]
// CHECK:      schedule.temporal @p_m [M = 1]
// CHECK:      %c = schedule.temporal @c_k
// CHECK:      dataflow.push %m to
// CHECK-NEXT: dataflow.push %l to
// CHECK-NEXT: dataflow.signal {{.*}} release gpu fence
// CHECK-NEXT: dataflow.read_tile
// CHECK-NEXT: dataflow.read_tile
// CHECK-NEXT: %m_parts, %l_parts = dataflow.wait {{.*}} acquire gpu arrivals 4
// CHECK:      compound.map sub %c

// TRITON:      cta = program % CTAS
// TRITON-NEXT: pid = program // CTAS
// TRITON-NEXT: epoch = next_epoch(counters_ptr)
// TRITON-NEXT: awaited = epoch * 4
// TRITON:      signal_programs(m_flags_ptr + start_m // 16)
// TRITON-NEXT: wait_programs(m_flags_ptr + start_m // 16, awaited)
// TRITON:      finish_epoch(counters_ptr, epoch, 24)
// TRITON:      self.m_recv = rank.zeros((1, 4, 96), torch.float32)
// TRITON:      (24,),
// TRITON:      launch_cooperative_grid=True,
func.func @gemm_softmax(%a: tensor<96x64xf16>, %b: tensor<64x256xf16>) -> tensor<96x256xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<96x64xf16>, tensor<64x256xf16>) -> tensor<96x256xf16>
  func.return %p : tensor<96x256xf16>
}
