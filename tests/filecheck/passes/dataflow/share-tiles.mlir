// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full split="S=4" merge=last share=none to=dataflow}' -o %t.mlir
// RUN: comet-opt %t.mlir -p 'share-tiles{kernels="f_m_kernel=6"},annotate-cost' | filecheck %s
// RUN: comet-opt %t.mlir -p 'share-tiles{kernels=all},annotate-cost' | filecheck %s --check-prefix ALL
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full split="S=4" merge=last to=dataflow}' | filecheck %s --check-prefix AUTO
// RUN: comet-opt %t.mlir -p 'triton-distributed{merge=last share="f_m_kernel=6"}' -t triton | filecheck %s --check-prefix TRITON

// Three programs for each of two heads share the tiles of three sequences.

!Q = tensor<3x2x3x16xf16>
!K = tensor<3x2x256x16xf16>
!L = tensor<3xi32>

// CHECK:      func.func @f({{.*}} comet.shares = "f_m_kernel=6"
// CHECK:        %first, %end, %count = dataflow.shares of %lens{{.*}} offset -1 tiles [[TILES:[0-9]+]] of {{[0-9]+}} runs 3 : tensor<3xi32, {{.*}} -> tensor<4x3xi32, #compound.dims<S_part, B @HBM>>
// CHECK-NEXT:   compound.rename %k{{.*}} : {{.*}}<B, H, S, D @HBM>> -> tensor<3x2x256x16xf16, #compound.dims<B, H, S_in, D @HBM>>
// CHECK-NEXT:   compound.index : tensor<256xi32, #compound.dims<S_in @HBM>>
// CHECK-NEXT:   compound.rename %v{{.*}} : {{.*}}<B, H, S, E @HBM>> -> tensor<3x2x256x16xf16, #compound.dims<B, H, S_in, E @HBM>>
// CHECK-NEXT:   schedule.spatial @m on grid [g0: S_part = 4, g1: B = 3, g2: H = 2, g3: G = 1] {{.*}} persistent = 6>
// CHECK:          schedule.temporal @m_s_in [S_in = [[TILES]]] partial first 5 end 6 ins(
// CHECK:            compound.map ge {{.*}} -> tensor<1x{{[0-9]+}}xi1, #compound.dims<B, S_in @REG>>
// CHECK:        dataflow.arrive %m{{.*}} arrivals 4 count %count : tensor<3xi32, {{.*}}> acq_rel gpu fence
// CHECK:        schedule.spatial @o on grid [g0: B = 3,
// CHECK:          schedule.temporal @m_s_parts [S_parts = 4] end 3 ins(

// ALL:  comet.shares = "none"
// AUTO-NOT: comet.shares

// TRITON:      run = program // 2
// TRITON:      tiles = tl.where(last >= 0, tl.minimum(last // [[SIZE:[0-9]+]] + 1, [[TILES:[0-9]+]]), [[TILES]])
// TRITON:      ends = tl.cumsum(tiles_1, axis=0)
// TRITON:      run_length = tl.maximum((total + 2) // 3, (most + 1) // 3)
// TRITON:      for b in range(first_b, stop_b, 1):
// TRITON:        s_part = run - first_run
// TRITON:        for s_in in range(start, stop, BLOCK_S_in):
// TRITON:        arrive_last(m_counters_ptr + (b * 2 + h), parts)
// TRITON:          for s_parts in range(parts):
// TRITON:      (6,),

func.func @f(%q: !Q, %k: !K, %v: !K, %lens: !L) -> !Q {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !K, !L) -> !Q
  func.return %o : !Q
}
