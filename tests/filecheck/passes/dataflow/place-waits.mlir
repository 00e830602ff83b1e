// RUN: comet-opt %s -p place-waits | filecheck %s
// RUN: comet-opt %s -p place-waits > %t.mlir && comet-opt %t.mlir -p place-waits,verify-sync | diff %t.mlir -

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!H = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!U = tensor<2x4xf32, #compound.dims<M, K @HBM>>
!u = tensor<2x4xf32, #compound.dims<M, K @REG>>
!O = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2xf32, #compound.dims<M @HBM>>
!S = tensor<2xf32, #compound.dims<M @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, [M = 2]>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !G) -> (!O, !O) {
  %all, %others = collective.spmd on @gpus ins(%x : !G) sharded [{K = ["rank"]}]
      outs(!O, !O) sharded [{}, {}] {
  ^bb0(%l: !L):
    %r, %s = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
      %flags = dataflow.flags for %box writers 1 : !CH -> !F
      // What goes to a channel only is stored there and nowhere else, then signalled.
      // CHECK:      dataflow.kernel @send
      // CHECK:        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : {{.*}}) with(%ch, %e, %f : {{.*}}) outs({{.*}}) {
      // CHECK-NEXT:   ^bb0(%t0: {{.*}}, %ch_1: {{.*}}, %e_1: !dataflow.epoch, %f_1: {{.*}}):
      // CHECK-NEXT:     %t1 = schedule.copy %t0
      // CHECK-NEXT:     %t2 = dataflow.push %t1 to %ch_1 epoch %e_1 : {{.*}} -> tensor<2x8xf32, #compound.dims<M, K @HBM>>
      // CHECK-NEXT:     dataflow.signal %ch_1 covers(%t2 : tensor<2x8xf32, #compound.dims<M, K @HBM>>) flags %f_1 epoch %e_1 release system fence
      // CHECK-NEXT:     schedule.yield %t2
      // CHECK-NEXT:   }
      // CHECK-NEXT:   dataflow.yield
      dataflow.kernel @send ins(%x1, %box, %flags : !L, !CH, !F) {
      ^bb0(%x2: !L, %ch: !CH, %f: !F):
        %e = dataflow.epoch
        %t = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t0: !T):
          %t1 = schedule.copy %t0 : !T -> !t
          %t2 = schedule.copy %t1 : !t -> !T
          schedule.yield %t2 : !T
        }
        dataflow.push %t to %ch epoch %e : !L, !CH
        dataflow.signal %ch flags %f epoch %e release system fence : !CH, !F
        dataflow.yield
      }
      // One tile of each source: all are waited for before the loop over them.
      // CHECK:      dataflow.kernel @whole ins(%box, %flags : {{.*}}) outs(%b : {{.*}}) sources ["K"] {
      // CHECK-NEXT: ^bb0(%ch: {{.*}}, %f: {{.*}}):
      // CHECK-NEXT:   %e = dataflow.epoch
      // CHECK-NEXT:   %g = dataflow.read %ch epoch %e
      // CHECK-NEXT:   %s_1 = schedule.spatial on grid [g0: M = 2] ins(%g : {{.*}}) with(%ch, %f, %e : {{.*}}) outs({{.*}}) {
      // CHECK-NEXT:   ^bb0(%w: {{.*}}, %ch_1: {{.*}}, %f_1: {{.*}}, %e_1: !dataflow.epoch):
      // CHECK-NEXT:     %w_1 = dataflow.wait %ch_1 for(%w : tensor<2x16xf32, #compound.dims<M, K @HBM>>) flags %f_1 epoch %e_1 acquire system arrivals 1
      // CHECK-NEXT:     %n = schedule.temporal [K = 2] ins(%w_1 : {{.*}}) outs({{.*}}) combine ["add"] {
      // CHECK-NEXT:     ^bb0(%k: {{.*}}):
      // CHECK-NEXT:       %k1 = schedule.copy %k
      %b = dataflow.buffer : !O
      %y = dataflow.kernel @whole ins(%box, %flags : !CH, !F) outs(%b : !O) sources ["K"] {
      ^bb0(%ch: !CH, %f: !F):
        %e = dataflow.epoch
        dataflow.wait %ch flags %f epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %ch epoch %e : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!O) {
        ^bb0(%w: !H):
          %n = schedule.temporal [K = 2] ins(%w : !H) outs(!S) combine ["add"] {
          ^bb0(%k: !T):
            %k1 = schedule.copy %k : !T -> !t
            %p = compound.reduce add %k1 : !t -> !S
            schedule.yield %p : !S
          }
          %n1 = schedule.copy %n : !S -> !P
          schedule.yield %n1 : !P
        }
        dataflow.yield %s : !O
      } -> !O
      // Two tiles of each: each source is waited for in the loop, which is split.
      // CHECK:      dataflow.kernel @parts
      // CHECK:        %n = schedule.temporal [K = 2] ins(%w : {{.*}}) with(%ch_1, %f_1, %e_1 : {{.*}}) outs({{.*}}) combine ["add"] {
      // CHECK-NEXT:   ^bb0(%k: tensor<2x8xf32, #compound.dims<M, K @HBM>>, %ch_2: {{.*}}, %f_2: {{.*}}, %e_2: !dataflow.epoch):
      // CHECK-NEXT:     %k_1 = dataflow.wait %ch_2 for(%k : tensor<2x8xf32, #compound.dims<M, K @HBM>>) flags %f_2 epoch %e_2 acquire system arrivals 1
      // CHECK-NEXT:     %n_1 = schedule.temporal [K = 2] ins(%k_1 : {{.*}}) outs({{.*}}) combine ["add"] {
      // CHECK-NEXT:     ^bb0(%k_2: tensor<2x4xf32, #compound.dims<M, K @HBM>>):
      // CHECK-NEXT:       %k1 = schedule.copy %k_2
      // CHECK:          schedule.yield %n_1
      %c = dataflow.buffer : !O
      %z = dataflow.kernel @parts ins(%box, %flags : !CH, !F) outs(%c : !O) sources ["K"] {
      ^bb0(%ch: !CH, %f: !F):
        %e = dataflow.epoch
        dataflow.wait %ch flags %f epoch %e acquire system arrivals 1 : !CH, !F
        %g = dataflow.read %ch epoch %e : !CH -> !G
        %s = schedule.spatial on grid [g0: M = 2] ins(%g : !G) outs(!O) {
        ^bb0(%w: !H):
          %n = schedule.temporal [K = 2, K = 2] ins(%w : !H) outs(!S) combine ["add"] {
          ^bb0(%k: !U):
            %k1 = schedule.copy %k : !U -> !u
            %p = compound.reduce add %k1 : !u -> !S
            schedule.yield %p : !S
          }
          %n1 = schedule.copy %n : !S -> !P
          schedule.yield %n1 : !P
        }
        dataflow.yield %s : !O
      } -> !O
      dataflow.yield %y, %z : !O, !O
    } -> !O, !O
    collective.yield %r, %s : !O, !O
  }
  return %all, %others : !O, !O
}
