// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=bsp}' | filecheck %s --check-prefix=BSP
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=wait}' | filecheck %s --check-prefix=WAIT
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=push blocks="M=2 K=2"}' | filecheck %s --check-prefix=PUSH
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=pull}' | filecheck %s --check-prefix=PULL
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=fused}' | filecheck %s --check-prefix=FUSED

// A kernel makes shares of K, all ranks sum them.

!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x64xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @REG>>
!W = tensor<2x64xf32, #compound.dims<M, K @HBM>>
!S = tensor<2x32xf32, #compound.dims<M, K @REG>>
!O = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2xf32, #compound.dims<M @REG>>

collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}

func.func @f(%x: !G) -> !O {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}] outs(!O) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %made = dataflow.buffer : !L
      %e = dataflow.kernel @make ins(%x1 : !L) outs(%made : !L) {
      ^bb0(%x2: !L):
        %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) outs(!L) {
        ^bb0(%t: !T):
          %y = compound.map exp %t : !T -> !T
          schedule.yield %y : !T
        }
        dataflow.yield %n : !L
      } -> !L
      dataflow.barrier
      %whole = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%e : !L) outs(%whole : !G) {
      ^bb0(%e1: !L):
        %y = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.barrier
      %sums = dataflow.buffer : !O
      %s = dataflow.kernel @sum ins(%g : !G) outs(%sums : !O) {
      ^bb0(%g1: !G):
        %n = schedule.spatial on grid [g0: M = 2] ins(%g1 : !G) outs(!O) {
        ^bb0(%w: !W):
          %k = schedule.temporal [K = 2] ins(%w : !W) outs(!P) combine ["add"] {
          ^bb0(%t: !S):
            %p = compound.reduce add %t : !S -> !P
            schedule.yield %p : !P
          }
          schedule.yield %k : !P
        }
        dataflow.yield %n : !O
      } -> !O
      dataflow.yield %s : !O
    } -> !O
    collective.yield %r : !O
  }
  func.return %all : !O
}

// Barriers stay; one kernel sends, and nobody waits for flags.
// BSP:       %e1_channel = dataflow.channel on @h200x8 ["rank"] blocks [] : !dataflow.channel<push gather K : tensor<4x8xf32, #compound.dims<M, K @HBM>> -> tensor<4x64xf32, #compound.dims<M, K @HBM>>>
// BSP:       dataflow.kernel @make
// BSP:       dataflow.barrier
// BSP-NEXT:  dataflow.kernel @gather ins(%e, %e1_channel : {{.*}}) {
// BSP:         %{{.*}} = schedule.spatial on grid [] ins
// BSP:         dataflow.push %{{.*}} to %channel
// BSP-NEXT:    dataflow.yield
// BSP-NEXT:  }
// BSP-NEXT:  dataflow.barrier
// All has arrived when this begins: no loop runs over sources.
// BSP: {{.*}}dataflow.kernel @sum ins(%e1_channel : {{.*}}) outs(%sums : tensor<4xf32, #compound.dims<M @HBM>>) {
// BSP-NEXT:  ^bb0(%channel
// BSP-NEXT:    %{{.*}} = dataflow.read %channel
// BSP-NEXT:    {{.*}}schedule.spatial on grid [g0: M = 2]
// BSP:         schedule.temporal [K = 2] ins

// One flag for each rank's whole message.
// WAIT:      dataflow.channel on @h200x8 ["rank"] blocks [] : !dataflow.channel<push
// WAIT:      dataflow.kernel @make
// WAIT:      dataflow.barrier local
// WAIT-NEXT: dataflow.kernel @gather
// WAIT:        dataflow.push
// WAIT-NEXT:   dataflow.signal %channel
// WAIT-NEXT:   dataflow.yield
// WAIT-NOT:  dataflow.barrier
// WAIT:      dataflow.kernel @sum
// WAIT:        dataflow.wait %channel
// WAIT-NEXT:   {{.*}}dataflow.read %channel

// Communication has tiles of its own; readers wait for blocks of M, the dimension that they cut.
// PUSH:      dataflow.channel on @h200x8 ["rank"] blocks [M = 2] : !dataflow.channel<push
// PUSH:      dataflow.kernel @gather
// PUSH:        schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(
// PUSH-NEXT:   ^bb0(%{{.*}}: tensor<2x4xf32, #compound.dims<M, K @REG>>):
// PUSH:        dataflow.signal %channel

// What a kernel makes is loaded from where it makes it.
// PULL:      dataflow.channel on @h200x8 ["rank"] blocks [M = 2] : !dataflow.channel<pull
// PULL-NEXT: {{.*}}dataflow.kernel @make ins(%x1, %e1_channel : {{.*}}) {
// PULL:        dataflow.stage %n to %channel
// PULL-NEXT:   dataflow.signal %channel
// PULL-NOT:  @gather
// PULL:      dataflow.kernel @sum
// PULL:        dataflow.wait %channel
// PULL-NEXT:   {{.*}}dataflow.pull %channel

// The kernel that makes a tile sends it; the buffer is gone, and so is the copy.
// FUSED:      dataflow.channel on @h200x8 ["rank"] blocks [M = 2] : !dataflow.channel<push
// FUSED-NEXT: {{.*}}dataflow.kernel @make ins(%x1, %e1_channel : {{.*}}) {
// FUSED:        dataflow.push %n to %channel
// FUSED-NEXT:   dataflow.signal %channel
// FUSED-NEXT:   dataflow.yield
// FUSED-NEXT: }
// FUSED-NEXT: %sums = dataflow.buffer
// FUSED-NEXT: {{.*}}dataflow.kernel @sum
