// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'select-ranks{ranks=3}' | filecheck %s

collective.mesh @pair {rank = 2}
// CHECK: select-ranks: ranks=3 is too many: @pair has 2; attach hardware with more, or use fewer

// -----

collective.mesh @edge {cx = 2, cy = 2}
// CHECK: select-ranks: mesh @edge has no axis 'rank'; its axes are cx, cy

// -----

collective.mesh @gpus {rank = 4}
func.func @f(%x: tensor<8xf32, #compound.dims<M>>) -> tensor<8xf32, #compound.dims<M>> {
  %y = collective.spmd on @gpus ins(%x : tensor<8xf32, #compound.dims<M>>) sharded [{M = ["rank"]}] outs(tensor<8xf32, #compound.dims<M>>) sharded [{M = ["rank"]}] {
  ^bb0(%x_1: tensor<2xf32, #compound.dims<M>>):
    collective.yield %x_1 : tensor<2xf32, #compound.dims<M>>
  }
  func.return %y : tensor<8xf32, #compound.dims<M>>
}
// CHECK: select-ranks: collective.spmd is written for 4 ranks of @gpus; run select-ranks before insert-collectives
