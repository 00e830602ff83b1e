// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// A sum in two parts: the last program to arrive at the counter of some rows adds the parts.

!X = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!S = tensor<2x4xf32, #compound.dims<parts, M @HBM>>
!R = tensor<4xf32, #compound.dims<M @HBM>>
!C = !dataflow.counters<[M = 2]>

func.func @f(%x: !X) -> !R {
%r = dataflow.program ins(%x : !X) {
^bb0(%x1: !X):
  // CHECK: %counters = dataflow.counters : !dataflow.counters<[M = 2]>
  // CHECK-GENERIC: %counters = "dataflow.counters"() : () -> !dataflow.counters<[M = 2]>
  %counters = dataflow.counters : !C
  %b = dataflow.buffer : !P
  %c = dataflow.buffer : !R
  %y, %z = dataflow.kernel @k ins(%x1, %counters : !X, !C) outs(%b, %c : !P, !R) {
  ^bb1(%x2: !X, %counters1: !C):
    %v = compound.rename %x2 split "K" : !X -> tensor<4x2x4xf32, #compound.dims<M, part, K @HBM>>
    %p = schedule.spatial @p on grid [g0: part = 2, g1: M = 2] ins(%v : tensor<4x2x4xf32, #compound.dims<M, part, K @HBM>>) outs(!P) {
    ^bb2(%t: tensor<2x1x4xf32, #compound.dims<M, part, K @REG>>):
      %s = compound.reduce add %t : tensor<2x1x4xf32, #compound.dims<M, part, K @REG>> -> tensor<1x2xf32, #compound.dims<part, M @REG>>
      schedule.yield %s : tensor<1x2xf32, #compound.dims<part, M @REG>>
    }
    // CHECK: %all = dataflow.arrive %p at %counters{{.*}} arrivals 2 acq_rel gpu fence : tensor<2x4xf32, #compound.dims<part, M @HBM>> at !dataflow.counters<[M = 2]>
    // CHECK-GENERIC: "dataflow.arrive"(%p, {{%counters.*}}) <{arrivals = 2 : i64, {{.*acq_rel.*gpu.*}}, fence, operandSegmentSizes = array<i32: 1, 1, 0>}>
    %all = dataflow.arrive %p at %counters1 arrivals 2 acq_rel gpu fence : !P at !C
    %w = compound.rename %all : !P -> !S
    %q = schedule.spatial @q on grid [g0: M = 2] ins(%w : !S) outs(!R) {
    ^bb3(%t: tensor<2x2xf32, #compound.dims<parts, M @REG>>):
      %s = compound.reduce add %t : tensor<2x2xf32, #compound.dims<parts, M @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
      schedule.yield %s : tensor<2xf32, #compound.dims<M @REG>>
    }
    dataflow.yield %p, %q : !P, !R
  } -> !P, !R
  dataflow.yield %z : !R
} -> !R
func.return %r : !R
}
