// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},sink-scales' | filecheck %s
// RUN: comet-opt %s -p 'sink-scales{scales=all}' | filecheck %s --check-prefix=ALL
// RUN: comet-opt %s -p 'sink-scales{scales=none}' | filecheck %s --check-prefix=NONE

// A norm before two products: these need its scale only after their sums.

!MD = tensor<16x64xbf16, #compound.dims<M, D>>
!MD_f32 = tensor<16x64xf32, #compound.dims<M, D>>
!M = tensor<16xf32, #compound.dims<M>>
!DF = tensor<64x32xbf16, #compound.dims<D, F>>
!MF = tensor<16x32xf32, #compound.dims<M, F>>
func.func @norm(%x: !MD, %g: tensor<64xf32, #compound.dims<D>>, %w: !DF, %u: !DF) -> (!MF, !MF) {
  %x_f32 = compound.cast %x : !MD -> !MD_f32
  %sq = compound.map mult %x_f32, %x_f32 : !MD_f32, !MD_f32 -> !MD_f32
  %sum = compound.reduce add %sq : !MD_f32 -> !M
  %scale = compound.map rsqrt %sum : !M -> !M
  %scaled = compound.map mult %x_f32, %scale : !MD_f32, !M -> !MD_f32
  %h = compound.map mult %scaled, %g : !MD_f32, tensor<64xf32, #compound.dims<D>> -> !MD_f32
  %h_bf16 = compound.cast %h : !MD_f32 -> !MD
  %gate = compound.contract %h_bf16, %w : !MD, !DF -> !MF
  %up = compound.contract %h_bf16, %u : !MD, !DF -> !MF
  func.return %gate, %up : !MF, !MF
}

// CHECK-LABEL: func.func @norm
// CHECK:        %scale = compound.map rsqrt %sum
// CHECK-NEXT:   %h = compound.map mult %x_f32, %g
// CHECK-NEXT:   %h_bf16 = compound.cast %h
// CHECK-NEXT:   %gate_sum = compound.contract %h_bf16, %w
// CHECK-NEXT:   %gate = compound.map mult %gate_sum, %scale
// CHECK-NEXT:   %up_sum = compound.contract %h_bf16, %u
// CHECK-NEXT:   %up = compound.map mult %up_sum, %scale
// CHECK-NEXT:   func.return %gate, %up
// NONE-LABEL:  func.func @norm
// NONE:         %scaled = compound.map mult %x_f32, %scale

// With `all`, divisors and arguments are factors, too; a number is one of any sum. A
// factor that has the summed dimension stays, and so does a factor of another reader.

func.func @factors(%x: tensor<4x8xf32, #compound.dims<M, D>>, %r: tensor<4xf32, #compound.dims<M>>, %g: tensor<8xf32, #compound.dims<D>>, %w: tensor<8x6xf32, #compound.dims<D, E>>) -> (tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x8xf32, #compound.dims<M, D>>) {
  %half = compound.fill 0.5 : tensor<f32, #compound.dims<>>
  %a = compound.map div %x, %r : tensor<4x8xf32, #compound.dims<M, D>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %b = compound.map mult %g, %a : tensor<8xf32, #compound.dims<D>>, tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %c = compound.map mult %half, %b : tensor<f32, #compound.dims<>>, tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %y = compound.contract %c, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  func.return %y, %a : tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x8xf32, #compound.dims<M, D>>
}

// ALL-LABEL:   func.func @factors
// ALL-NEXT:     %half = compound.fill
// ALL-NEXT:     %a = compound.map div %x, %r
// ALL-NEXT:     %b = compound.map mult %g, %x
// ALL-NEXT:     %y_sum = compound.contract %b, %w
// ALL-NEXT:     %[[Y:.*]] = compound.map div %y_sum, %r
// ALL-NEXT:     %y = compound.map mult %[[Y]], %half
// ALL-NEXT:     func.return %y, %a
// CHECK-LABEL: func.func @factors
// CHECK:        compound.contract %c, %w

// These stay: a factor along the sum, one that gives the operand a dimension, a
// dividend, and what is added.

func.func @stay(%x: tensor<4x8xf32, #compound.dims<M, D>>, %r: tensor<4xf32, #compound.dims<M>>, %g: tensor<8xf32, #compound.dims<D>>, %w: tensor<8x6xf32, #compound.dims<D, E>>) -> (tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>) {
  %a = compound.map mult %x, %g : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8xf32, #compound.dims<D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %y = compound.contract %a, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  %b = compound.map mult %g, %r : tensor<8xf32, #compound.dims<D>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %z = compound.contract %b, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  %c = compound.map div %r, %x : tensor<4xf32, #compound.dims<M>>, tensor<4x8xf32, #compound.dims<M, D>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %u = compound.contract %c, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  %d = compound.map add %x, %r : tensor<4x8xf32, #compound.dims<M, D>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x8xf32, #compound.dims<M, D>>
  %v = compound.contract %d, %w : tensor<4x8xf32, #compound.dims<M, D>>, tensor<8x6xf32, #compound.dims<D, E>> -> tensor<4x6xf32, #compound.dims<M, E>>
  func.return %y, %z, %u, %v : tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>, tensor<4x6xf32, #compound.dims<M, E>>
}

// ALL-LABEL:   func.func @stay
// ALL:          %y = compound.contract %a, %w
// ALL:          %z = compound.contract %b, %w
// ALL:          %u = compound.contract %c, %w
// ALL:          %v = compound.contract %d, %w
