// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},distribute{dim=N axes=kx,ky},insert-collectives,place-collectives,fuse{strategy=full}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},comet-accelerator{dim=N strategy=full stream=false pad=none}' -t comet | filecheck %s --check-prefix=FILES

// What reads an argument, or a value with other readers, casts it as it reads. The exponentials are
// stored narrow, as nothing else reads them.

!X = tensor<32x48xbf16, #compound.dims<M, K>>
!W = tensor<48x32xi32, #compound.dims<K, N>>
!Wb = tensor<48x32xbf16, #compound.dims<K, N>>
!b = tensor<32xbf16, #compound.dims<N>>
!bf = tensor<32xf32, #compound.dims<N>>
!Y = tensor<32x32xf32, #compound.dims<M, N>>
!Yb = tensor<32x32xbf16, #compound.dims<M, N>>

func.func @f(%x: !X, %w: !W, %b: !b) -> (!Yb, !Yb) {
  %w_bf16 = compound.cast %w : !W -> !Wb
  %c = compound.contract %x, %w_bf16 : !X, !Wb -> !Y
  %b_f32 = compound.cast %b : !b -> !bf
  %s = compound.map add %c, %b_f32 : !Y, !bf -> !Y
  %e = compound.map exp %s : !Y -> !Y
  %s_bf16 = compound.cast %s : !Y -> !Yb
  %r = compound.map neg %s_bf16 : !Yb -> !Yb
  %e_bf16 = compound.cast %e : !Y -> !Yb
  func.return %e_bf16, %r : !Yb, !Yb
}

// CHECK:      %c_1 = schedule.temporal @c_ob [] ins(%x_4, %w_4 : tensor<32x48xbf16, #compound.dims<M, K @IB>>, tensor<48x8xi32, #compound.dims<K, N @WB>>) outs(tensor<32x8xf32, #compound.dims<M, N @OB>>) {
// CHECK-NEXT: ^bb0(%x_5: tensor<32x48xbf16, #compound.dims<M, K @IB>>, %w_5: tensor<48x8xi32, #compound.dims<K, N @WB>>):
// CHECK-NEXT:   %w_bf16 = compound.cast %w_5 : tensor<48x8xi32, #compound.dims<K, N @WB>> -> tensor<48x8xbf16, #compound.dims<K, N @WB>>
// CHECK-NEXT:   %c_2 = compound.contract %x_5, %w_bf16 : tensor<32x48xbf16, #compound.dims<M, K @IB>>, tensor<48x8xbf16, #compound.dims<K, N @WB>> -> tensor<32x8xf32, #compound.dims<M, N @OB>>
// CHECK-NEXT:   schedule.yield %c_2 : tensor<32x8xf32, #compound.dims<M, N @OB>>
// CHECK-NEXT: }
// CHECK:      %s = schedule.temporal @s_ob [] ins(%c_1, %b_4 : tensor<32x8xf32, #compound.dims<M, N @OB>>, tensor<8xbf16, #compound.dims<N @OB>>) outs(tensor<32x8xf32, #compound.dims<M, N @OB>>) {
// CHECK-NEXT: ^bb0(%c_2: tensor<32x8xf32, #compound.dims<M, N @OB>>, %b_5: tensor<8xbf16, #compound.dims<N @OB>>):
// CHECK-NEXT:   %b_f32 = compound.cast %b_5 : tensor<8xbf16, #compound.dims<N @OB>> -> tensor<8xf32, #compound.dims<N @OB>>
// CHECK-NEXT:   %s_1 = compound.map add %c_2, %b_f32 : tensor<32x8xf32, #compound.dims<M, N @OB>>, tensor<8xf32, #compound.dims<N @OB>> -> tensor<32x8xf32, #compound.dims<M, N @OB>>
// CHECK-NEXT:   schedule.yield %s_1 : tensor<32x8xf32, #compound.dims<M, N @OB>>
// CHECK-NEXT: }
// CHECK:      %e_bf16_4 = schedule.temporal @e_bf16_ob [] ins(%s : tensor<32x8xf32, #compound.dims<M, N @OB>>) outs(tensor<32x8xbf16, #compound.dims<M, N @OB>>) {
// CHECK-NEXT: ^bb0(%s_1: tensor<32x8xf32, #compound.dims<M, N @OB>>):
// CHECK-NEXT:   %e = compound.map exp %s_1 : tensor<32x8xf32, #compound.dims<M, N @OB>> -> tensor<32x8xf32, #compound.dims<M, N @OB>>
// CHECK-NEXT:   %e_bf16_5 = compound.cast %e : tensor<32x8xf32, #compound.dims<M, N @OB>> -> tensor<32x8xbf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:   schedule.yield %e_bf16_5 : tensor<32x8xbf16, #compound.dims<M, N @OB>>
// CHECK-NEXT: }
// CHECK:      %r_4 = schedule.temporal @r_ob [] ins(%s : tensor<32x8xf32, #compound.dims<M, N @OB>>) outs(tensor<32x8xbf16, #compound.dims<M, N @OB>>) {
// CHECK-NEXT: ^bb0(%s_1: tensor<32x8xf32, #compound.dims<M, N @OB>>):
// CHECK-NEXT:   %s_bf16 = compound.cast %s_1 : tensor<32x8xf32, #compound.dims<M, N @OB>> -> tensor<32x8xbf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:   %r_5 = compound.map neg %s_bf16 : tensor<32x8xbf16, #compound.dims<M, N @OB>> -> tensor<32x8xbf16, #compound.dims<M, N @OB>>
// CHECK-NEXT:   schedule.yield %r_5 : tensor<32x8xbf16, #compound.dims<M, N @OB>>
// CHECK-NEXT: }

// In the files each tensor has one name, and moves in the element type that it has in memory.
// FILES-COUNT-3: precision: [16, 32, 16, 16, 16]
// FILES:         tensors: [x, w, c]
// FILES:         precision: [16, 32, 32]
// FILES:         tensors: [s, e]
// FILES:         precision: [32, 16]
// FILES:         tensors: [s, r]
// FILES:         precision: [32, 16]
