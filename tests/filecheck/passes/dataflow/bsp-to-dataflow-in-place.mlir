// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=pull inputs=symmetric}' | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=pull inputs=symmetric},lower-channels,verify-sync' | filecheck %s --check-prefix=LOWERED

// Two kernels take all shares of %x, which nobody else reads. %y is read by one more kernel.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x64xf32, #compound.dims<M, K @HBM>>
!W = tensor<2x64xf32, #compound.dims<M, K @HBM>>
!S = tensor<2x32xf32, #compound.dims<M, K @REG>>
!O = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2xf32, #compound.dims<M @REG>>

collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}

func.func @f(%x: !G, %y: !G) -> (!O, !O) {
  %all:2 = collective.spmd on @h200x8 ins(%x, %y : !G, !G) sharded [{K = ["rank"]}, {K = ["rank"]}] outs(!O, !O) sharded [{}, {}] {
  ^bb0(%l: !L, %k: !L):
    %r:2 = dataflow.program ins(%l, %k : !L, !L) {
    ^bb0(%x1: !L, %y1: !L):
      %whole = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%x1 : !L) outs(%whole : !G) {
      ^bb0(%e1: !L):
        %c = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %c : !G
      } -> !G
      %others = dataflow.buffer : !G
      %h = dataflow.kernel @gather_too ins(%y1 : !L) outs(%others : !G) {
      ^bb0(%e1: !L):
        %c = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %c : !G
      } -> !G
      dataflow.barrier
      %sums = dataflow.buffer : !O
      %s = dataflow.kernel @sum ins(%g : !G) outs(%sums : !O) {
      ^bb0(%g1: !G):
        %n = schedule.spatial on grid [g0: M = 2] ins(%g1 : !G) outs(!O) {
        ^bb0(%w: !W):
          %j = schedule.temporal [K = 2] ins(%w : !W) outs(!P) combine ["add"] {
          ^bb0(%t: !S):
            %p = compound.reduce add %t : !S -> !P
            schedule.yield %p : !P
          }
          schedule.yield %j : !P
        }
        dataflow.yield %n : !O
      } -> !O
      %most = dataflow.buffer : !O
      %m = dataflow.kernel @most ins(%g, %h : !G, !G) outs(%most : !O) {
      ^bb0(%g1: !G, %h1: !G):
        %n = schedule.spatial on grid [g0: M = 2] ins(%g1, %h1 : !G, !G) outs(!O) {
        ^bb0(%w: !W, %v: !W):
          %p = compound.reduce max %w : !W -> !P
          %q = compound.reduce max %v : !W -> !P
          %u = compound.map max %p, %q : !P, !P -> !P
          schedule.yield %u : !P
        }
        dataflow.yield %n : !O
      } -> !O
      %part = dataflow.buffer : !O
      %o = dataflow.kernel @own ins(%y1 : !L) outs(%part : !O) {
      ^bb0(%y2: !L):
        %n = schedule.spatial on grid [g0: M = 2] ins(%y2 : !L) outs(!O) {
        ^bb0(%v: tensor<2x8xf32, #compound.dims<M, K @HBM>>):
          %p = compound.reduce add %v : tensor<2x8xf32, #compound.dims<M, K @HBM>> -> !P
          schedule.yield %p : !P
        }
        dataflow.yield %n : !O
      } -> !O
      dataflow.yield %s, %m : !O, !O
    } -> !O, !O
    collective.yield %r#0, %r#1 : !O, !O
  }
  func.return %all#0, %all#1 : !O, !O
}

// CHECK:      [[A:%.*]] = dataflow.channel of %x1 on @h200x8 ["rank"] blocks [] : !dataflow.channel<pull gather K : {{.*}}>, tensor<4x8xf32, #compound.dims<M, K @HBM>>
// CHECK-NEXT: [[B:%.*]] = dataflow.channel on @h200x8 ["rank"]
// CHECK-NEXT: dataflow.kernel @gather_too ins(%y1, [[B]] :
// CHECK:        dataflow.stage
// CHECK-NEXT:   dataflow.signal
// CHECK-NOT:  dataflow.barrier
// CHECK:      dataflow.kernel @sum ins([[A]] :
// CHECK-NEXT: ^bb0(%channel:
// CHECK-NEXT:   dataflow.signal %channel
// CHECK-NEXT:   dataflow.wait %channel
// CHECK-NEXT:   %g1 = dataflow.pull %channel
// CHECK:      dataflow.kernel @most ins([[A]], [[B]] :
// CHECK-NEXT: ^bb0(%channel: {{.*}}):
// CHECK-NEXT:   dataflow.wait %channel
// CHECK-NEXT:   %g1 = dataflow.pull %channel
// CHECK-NEXT:   dataflow.wait
// CHECK-NEXT:   %h1 = dataflow.pull

// LOWERED:      [[A:%.*]] = dataflow.receive_buffer of %x1 slots 2 on @h200x8 ["rank"] : !dataflow.channel<pull gather K : {{.*}}>, tensor<4x8xf32, #compound.dims<M, K @HBM>>
// LOWERED-NEXT: [[F:%.*]] = dataflow.flags for [[A]] writers 1 : {{.*}} -> !dataflow.flags<8, []>
// LOWERED:      dataflow.kernel @sum ins([[A]], [[F]] :
// LOWERED-NEXT: ^bb0
// LOWERED-NEXT:   %epoch = dataflow.epoch
// LOWERED-NEXT:   dataflow.signal %channel flags %flags epoch %epoch release system fence
// LOWERED-NEXT:   dataflow.wait %channel flags %flags epoch %epoch acquire system arrivals 1
// LOWERED-NEXT:   %g1 = dataflow.pull %channel epoch %epoch
// LOWERED:      dataflow.kernel @most
// LOWERED-NOT:    dataflow.signal
