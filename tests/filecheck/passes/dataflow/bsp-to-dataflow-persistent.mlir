// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=fused}' | filecheck %s --check-prefix=APART
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=fused persistent=true tiles="last: M=4"}' | filecheck %s --check-prefix=ONE
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=fused persistent=true},lower-channels,verify-sync,lower-to-triton' -t triton | filecheck %s --check-prefix=TRITON

// Rows are divided by their sums over all ranks: the sums are gathered, the rows stay.

!X = tensor<8x16xf32, #compound.dims<M, K @HBM>>
!L = tensor<8x2xf32, #compound.dims<M, K @HBM>>
!S = tensor<8xf32, #compound.dims<M @HBM>>
!G = tensor<8x8xf32, #compound.dims<R, M @HBM>>
!xt = tensor<2x2xf32, #compound.dims<M, K @REG>>
!st = tensor<2xf32, #compound.dims<M @REG>>
!gt = tensor<8x2xf32, #compound.dims<R, M @REG>>

collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}

func.func @f(%x: !X) -> !X {
  %all = collective.spmd on @h200x8 ins(%x : !X) sharded [{K = ["rank"]}] outs(!X) sharded [{K = ["rank"]}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %rows = dataflow.buffer : !L
      %sums = dataflow.buffer : !S
      %e, %s = dataflow.kernel @make ins(%x1 : !L) outs(%rows, %sums : !L, !S) {
      ^bb0(%x2: !L):
        %n, %m = schedule.spatial on grid [g0: M = 4] ins(%x2 : !L) outs(!L, !S) {
        ^bb0(%t: !xt):
          %y = compound.map exp %t : !xt -> !xt
          %z = compound.reduce add %y : !xt -> !st
          schedule.yield %y, %z : !xt, !st
        }
        dataflow.yield %n, %m : !L, !S
      } -> !L, !S
      dataflow.barrier
      %parts = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%s : !S) outs(%parts : !G) {
      ^bb0(%s1: !S):
        %y = collective.all_gather "R" %s1 on @h200x8 ["rank"] : !S -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.barrier
      %out = dataflow.buffer : !L
      %d = dataflow.kernel @last ins(%e, %g : !L, !G) outs(%out : !L) {
      ^bb0(%e1: !L, %g1: !G):
        %n = schedule.spatial on grid [g0: M = 4] ins(%e1, %g1 : !L, !G) outs(!L) {
        ^bb0(%t: !xt, %u: !gt):
          %v = compound.reduce add %u : !gt -> !st
          %y = compound.map div %t, %v : !xt, !st -> !xt
          schedule.yield %y : !xt
        }
        dataflow.yield %n : !L
      } -> !L
      dataflow.yield %d : !L
    } -> !L
    collective.yield %r : !L
  }
  func.return %all : !X
}
func.func private @f__reference(%x: tensor<8x16xf32, #compound.dims<M, K>>) -> tensor<8x16xf32, #compound.dims<M, K>> attributes {comet.reference} {
  %y = compound.map exp %x : tensor<8x16xf32, #compound.dims<M, K>> -> tensor<8x16xf32, #compound.dims<M, K>>
  %s = compound.reduce add %y : tensor<8x16xf32, #compound.dims<M, K>> -> tensor<8xf32, #compound.dims<M>>
  %d = compound.map div %y, %s : tensor<8x16xf32, #compound.dims<M, K>>, tensor<8xf32, #compound.dims<M>> -> tensor<8x16xf32, #compound.dims<M, K>>
  func.return %d : tensor<8x16xf32, #compound.dims<M, K>>
}

// APART:      dataflow.kernel @make
// APART:        dataflow.push %m to %channel
// APART-NEXT:   dataflow.signal %channel
// APART-NEXT:   dataflow.yield %n :
// APART:      dataflow.barrier local
// APART:      dataflow.kernel @last

// The nodes follow each other; the second reads what the first one makes as it is there.
// ONE:      %{{.*}}, %{{.*}} = dataflow.kernel @last ins(%x1, %s1_channel : {{.*}}) outs(%rows, %out : {{.*}}) {
// ONE:        [[MADE:%.*]], %m = schedule.spatial on grid [g0: M = 4]
// ONE:        dataflow.push %m to %channel
// ONE-NEXT:   dataflow.signal %channel
// ONE-NEXT:   dataflow.wait %channel
// ONE-NEXT:   %g1 = dataflow.read %channel
// ONE-NEXT:   {{.*}}schedule.spatial on grid [g0: M = 2] ins([[MADE]], %g1 :
// ONE:        dataflow.yield [[MADE]], %{{.*}} :
// ONE-NOT:  dataflow.kernel

// Rows are stored through the caches, and loaded once its own rank's flag is there.
// TRITON:      if pid < 4:
// TRITON:          tl.store(e_ptr{{.*}}, y, cache_modifier=WT)
// TRITON:          signal_all(
// TRITON:      else:
// TRITON:          wait(s1_flags_ptr + (rank * 4 + start_m_1 // 2), epoch)
// TRITON:          e_tile = tl.load(e_ptr
// TRITON:      finish_epoch(counters_ptr, epoch, 8)
