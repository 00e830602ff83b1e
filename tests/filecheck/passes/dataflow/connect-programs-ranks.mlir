// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},triton-distributed{ranks=2 strategy=full ctas=4 to=dataflow}' -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: comet-opt %t.mlir -p verify-sync | filecheck %s
// RUN: comet-opt %t.mlir --print-op-generic | comet-opt | filecheck %s
// RUN: comet-opt %t.mlir -p 'triton-distributed{ranks=2 ctas=4}' -t triton | filecheck %s --check-prefix=TRITON

// Programs of a group exchange on their GPU first, then the root of each group with the other ranks.

// CHECK:      collective.spmd on @h200x8 {{.*}} sharded [{}, {N = ["rank"]}] outs({{.*}}) sharded [{N = ["rank"]}]
// CHECK:      %m_recv = dataflow.receive_buffer slots 1 on @h200x8 ["cta"]
// CHECK-NEXT: %m_flags = dataflow.flags for %m_recv writers 4 : {{.*}}!dataflow.flags<1, [M = 6]>
// CHECK:      %m_of_ranks_recv = dataflow.receive_buffer slots 2 on @h200x8 ["rank"] : {{.*}}gather rank_part : tensor<96xf32, {{.*}}> -> tensor<2x96xf32,
// CHECK-NEXT: %m_of_ranks_flags = dataflow.flags for %m_of_ranks_recv writers 1 : {{.*}}!dataflow.flags<2, [M = 6]>
// CHECK:      dataflow.kernel @gemm_softmax_kernel {{.*}} coresident 4
// CHECK:      schedule.spatial @p_cta on @h200x8 [cta: N = 4]
// CHECK:      dataflow.push %m{{[_0-9]*}} to
// CHECK-NEXT: dataflow.push %l to
// CHECK-NEXT: dataflow.signal %{{.*}} release gpu fence
// CHECK:      %m_parts, %l_parts = dataflow.wait {{.*}} acquire gpu arrivals 4
// CHECK:      dataflow.push root %m_{{[0-9]+}} to
// CHECK-NEXT: dataflow.push root %l_{{[0-9]+}} to
// CHECK-NEXT: dataflow.signal root %{{.*}} release system fence
// CHECK:      %m_parts_1, %l_parts_1 = dataflow.wait {{.*}} acquire system arrivals 1

// TRITON:      rank, program = rank_and_program_id(rank, PROGRAMS)
// TRITON-NEXT: cta = program % CTAS
// TRITON-NEXT: pid = program // CTAS
// TRITON:      is_root = cta == 0
// TRITON:      signal_programs(m_flags_ptr + start_m // 16)
// TRITON-NEXT: wait_programs(m_flags_ptr + start_m // 16, awaited)
// TRITON:      if is_root:
// TRITON-NEXT: # push to m_of_ranks_recv
// TRITON:      # push to l_of_ranks_recv
// TRITON-NOT:  if is_root:
// TRITON:      signal_all(
// TRITON:      wait_all(m_of_ranks_flags_ptr + start_m // 16, epoch, 6, WORLD)
// TRITON:      self.m_recv = rank.zeros((1, 4, 96), torch.float32)
// TRITON:      self.m_of_ranks_recv = rank.heap.zeros(
// TRITON:      PROGRAMS=rank.programs(24),
// TRITON:      launch_cooperative_grid=True,
func.func @gemm_softmax(%a: tensor<96x64xf16>, %b: tensor<64x512xf16>) -> tensor<96x512xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<96x64xf16>, tensor<64x512xf16>) -> tensor<96x512xf16>
  func.return %p : tensor<96x512xf16>
}
