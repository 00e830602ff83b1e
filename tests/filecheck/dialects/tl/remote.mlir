// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// CHECK:       tl.kernel @push(%a: !tl.ptr<f16>, %recv: !tl.ptr<f16>, %flags: !tl.ptr<i32>, %counters: !tl.ptr<i32>, %rank: i32, %bases: !tl.ptr<i64>, %WT: !tl.cache_modifier, %PROGRAMS: !tl.programs, %BLOCK: !tl.constexpr<16>) {
// CHECK-GENERIC: "tl.rank_and_program_id"
tl.kernel @push(%a: !tl.ptr<f16>, %recv: !tl.ptr<f16>, %flags: !tl.ptr<i32>, %counters: !tl.ptr<i32>, %rank: i32, %bases: !tl.ptr<i64>, %WT: !tl.cache_modifier, %PROGRAMS: !tl.programs, %BLOCK: !tl.constexpr<16>) {
  // CHECK-NEXT:    %r, %pid = tl.rank_and_program_id %rank, %PROGRAMS
  %r, %pid = tl.rank_and_program_id %rank, %PROGRAMS
  // CHECK-NEXT:    %s, %program = tl.rank_and_program_id %rank, %PROGRAMS first 4
  %s, %program = tl.rank_and_program_id %rank, %PROGRAMS first 4
  // CHECK-NEXT:    %own = tl.symmetric_address %a, %r, %bases, %PROGRAMS : !tl.ptr<f16>
  %own = tl.symmetric_address %a, %r, %bases, %PROGRAMS : !tl.ptr<f16>
  // CHECK-NEXT:    %epoch = tl.next_epoch %counters
  %epoch = tl.next_epoch %counters
  // CHECK-NEXT:    tl.wait %flags, %epoch
  tl.wait %flags, %epoch
  // CHECK-NEXT:    %there = tl.rebase %recv, %r, %pid, %bases : !tl.ptr<f16>
  %there = tl.rebase %recv, %r, %pid, %bases : !tl.ptr<f16>
  // CHECK-NEXT:    %any = tl.rebase_among %recv, %r, %pid, %bases, %BLOCK : !tl.ptr<f16>, !tl.constexpr<16>
  %any = tl.rebase_among %recv, %r, %pid, %bases, %BLOCK : !tl.ptr<f16>, !tl.constexpr<16>
  %offs = tl.arange %BLOCK : !tl.constexpr<16> -> tensor<16xi32>
  %p = tl.addptr %there, %offs : (!tl.ptr<f16>, tensor<16xi32>) -> tensor<16x!tl.ptr<f16>>
  %x = tl.load %p : tensor<16x!tl.ptr<f16>> -> tensor<16xf16>
  // CHECK:         tl.store %p, %x cache %WT : tensor<16x!tl.ptr<f16>>, tensor<16xf16>
  tl.store %p, %x cache %WT : tensor<16x!tl.ptr<f16>>, tensor<16xf16>
  // CHECK-NEXT:    %y = tl.remote_load %p, %r, %offs, %bases : tensor<16x!tl.ptr<f16>>, tensor<16xi32> -> tensor<16xf16>
  %y = tl.remote_load %p, %r, %offs, %bases : tensor<16x!tl.ptr<f16>>, tensor<16xi32> -> tensor<16xf16>
  %mask = tl.cmp lt %offs, %r : (tensor<16xi32>, i32) -> tensor<16xi1>
  %zero = tl.constant 0.0 : f16
  // CHECK:         %z = tl.remote_load %p, %r, %offs, %bases mask %mask : tensor<16xi1> other %zero : f16 : tensor<16x!tl.ptr<f16>>, tensor<16xi32> -> tensor<16xf16>
  %z = tl.remote_load %p, %r, %offs, %bases mask %mask : tensor<16xi1> other %zero : f16 : tensor<16x!tl.ptr<f16>>, tensor<16xi32> -> tensor<16xf16>
  // CHECK-NEXT:    tl.signal %flags, %epoch, %r, %pid, %bases
  tl.signal %flags, %epoch, %r, %pid, %bases
  // CHECK-NEXT:    tl.signal_add %flags, %epoch, %r, %pid, %bases
  tl.signal_add %flags, %epoch, %r, %pid, %bases
  // CHECK-NEXT:    tl.signal_all %flags, %epoch, %r, %bases, %BLOCK : !tl.constexpr<16>
  tl.signal_all %flags, %epoch, %r, %bases, %BLOCK : !tl.constexpr<16>
  // CHECK-NEXT:    tl.signal_add_all %flags, %epoch, %r, %bases, %BLOCK : !tl.constexpr<16>
  tl.signal_add_all %flags, %epoch, %r, %bases, %BLOCK : !tl.constexpr<16>
  // CHECK-NEXT:    tl.wait_all %flags, %epoch, %pid, %BLOCK : !tl.constexpr<16>
  tl.wait_all %flags, %epoch, %pid, %BLOCK : !tl.constexpr<16>
  // CHECK-NEXT:    tl.signal_programs %flags
  tl.signal_programs %flags
  // CHECK-NEXT:    tl.wait_programs %flags, %epoch
  tl.wait_programs %flags, %epoch
  // CHECK-NEXT:    %last = tl.arrive_last %counters, %pid
  %last = tl.arrive_last %counters, %pid
  // CHECK-NEXT:    tl.finish_epoch %counters, %epoch, %pid
  tl.finish_epoch %counters, %epoch, %pid
}

func.func @plan(%a: tensor<64xf16, #compound.dims<M>>, %b: tensor<64xf16, #compound.dims<M>>) -> tensor<64xf16, #compound.dims<M>> {
  // CHECK:         %c = tl.plan ranks 4 ins(%a, %b : tensor<64xf16, #compound.dims<M>>, tensor<64xf16, #compound.dims<M>>) split ["M", "M"] to [""] {
  %c = tl.plan ranks 4 ins(%a, %b : tensor<64xf16, #compound.dims<M>>, tensor<64xf16, #compound.dims<M>>) split ["M", "M"] to [""] {
  ^bb0(%a1: tensor<16xf16, #compound.dims<M>>, %b1: tensor<16xf16, #compound.dims<M>>):
    // CHECK:           %recv = tl.heap_zeros : tensor<2x4x16xf16>
    %recv = tl.heap_zeros : tensor<2x4x16xf16>
    %flags = tl.heap_zeros : tensor<4xi32>
    // CHECK:           %place = tl.heap_zeros of %b1 : tensor<2x16xf16>, tensor<16xf16, #compound.dims<M>>
    %place = tl.heap_zeros of %b1 : tensor<2x16xf16>, tensor<16xf16, #compound.dims<M>>
    // CHECK:           %counters = tl.zeros : tensor<2xi32>
    %counters = tl.zeros : tensor<2xi32>
    %c1 = tl.empty : tensor<64xf16, #compound.dims<M>>
    // CHECK:           %rank = tl.rank
    %rank = tl.rank
    // CHECK-NEXT:      %bases = tl.heap_bases : tensor<4xi64>
    %bases = tl.heap_bases : tensor<4xi64>
    tl.launch @push grid [1] on %a1, %recv, %flags, %counters, %rank, %bases : tensor<16xf16, #compound.dims<M>>, tensor<2x4x16xf16>, tensor<4xi32>, tensor<2xi32>, i32, tensor<4xi64>
    // CHECK:           tl.barrier
    tl.barrier
    // CHECK-NEXT:      tl.plan_yield %c1 : tensor<64xf16, #compound.dims<M>>
    tl.plan_yield %c1 : tensor<64xf16, #compound.dims<M>>
    // CHECK-NEXT:    } -> tensor<64xf16, #compound.dims<M>>
  } -> tensor<64xf16, #compound.dims<M>>
  func.return %c : tensor<64xf16, #compound.dims<M>>
}
