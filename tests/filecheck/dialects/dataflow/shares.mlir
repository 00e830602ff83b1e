// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// Two programs share the tiles of three sequences; the last one of a sequence adds its parts.

!X = tensor<3x8xf32, #compound.dims<B, S @HBM>>
!L = tensor<3xi32, #compound.dims<B @HBM>>
!P = tensor<2x3xf32, #compound.dims<part, B @HBM>>
!S = tensor<2x3xf32, #compound.dims<parts, B @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
!n = tensor<1x1xi32, #compound.dims<part, B @REG>>
!R = tensor<3xf32, #compound.dims<B @HBM>>
!p = tensor<1x1xf32, #compound.dims<part, B @REG>>
!r = tensor<1xf32, #compound.dims<B @REG>>
!C = !dataflow.counters<[B = 3]>

func.func @f(%x: !X, %lens: !L) -> !R {
%r = dataflow.program ins(%x, %lens : !X, !L) {
^bb0(%x1: !X, %lens1: !L):
  %counters = dataflow.counters : !C
  %b = dataflow.buffer : !P
  %c = dataflow.buffer : !R
  %y, %z = dataflow.kernel @k ins(%x1, %lens1, %counters : !X, !L, !C) outs(%b, %c : !P, !R) {
  ^bb1(%x2: !X, %lens2: !L, %counters1: !C):
    // CHECK: %first, %end, %count = dataflow.shares of %lens{{.*}} offset -1 tiles 4 of 2 runs 2 : tensor<3xi32, #compound.dims<B @HBM>> -> tensor<2x3xi32, #compound.dims<part, B @HBM>>, tensor<2x3xi32, #compound.dims<part, B @HBM>>, tensor<3xi32, #compound.dims<B @HBM>>
    // CHECK-GENERIC: %first, %end, %count = "dataflow.shares"(%lens{{.*}}) <{offset = -1 : i64, tiles = 4 : i64, size = 2 : i64, runs = 2 : i64}>
    %first, %end, %count = dataflow.shares of %lens2 offset -1 tiles 4 of 2 runs 2 : !L -> !N, !N, !L
    %p = schedule.spatial @p on grid [g0: part = 2, g1: B = 3] ins(%x2, %first, %end : !X, !N, !N) outs(!P) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 1, group = 1, persistent = 2>} {
    ^bb2(%x3: tensor<1x8xf32, #compound.dims<B, S @REG>>, %first1: !n, %end1: !n):
      %zero = compound.fill 0.0 : !p
      // CHECK: schedule.temporal @p_s [S = 4] first 1 end 2 ins(
      %s = schedule.temporal @p_s [S = 4] first 1 end 2 ins(%x3, %first1, %end1 : tensor<1x8xf32, #compound.dims<B, S @REG>>, !n, !n) iter_args(%zero : !p) outs(!p) combine ["fold"] {
      ^bb3(%x4: tensor<1x2xf32, #compound.dims<B, S @REG>>, %first2: !n, %end2: !n, %old: !p):
        %t = compound.reduce add %x4 : tensor<1x2xf32, #compound.dims<B, S @REG>> -> !r
        %new = compound.map add %old, %t : !p, !r -> !p
        schedule.yield %new : !p
      }
      schedule.yield %s : !p
    }
    // CHECK: dataflow.arrive %p at %counters{{.*}} arrivals 2 count %count : tensor<3xi32, #compound.dims<B @HBM>> acq_rel gpu fence :
    // CHECK-GENERIC: "dataflow.arrive"(%p, {{%counters.*}}, %count) <{arrivals = 2 : i64,
    %all = dataflow.arrive %p at %counters1 arrivals 2 count %count : !L acq_rel gpu fence : !P at !C
    %w = compound.rename %all : !P -> !S
    %q = schedule.spatial @q on grid [g0: B = 3] ins(%w, %count : !S, !L) outs(!R) {
    ^bb4(%w1: tensor<2x1xf32, #compound.dims<parts, B @REG>>, %count1: tensor<1xi32, #compound.dims<B @REG>>):
      %zero = compound.fill 0.0 : !r
      %s = schedule.temporal @q_parts [parts = 2] end 1 ins(%w1, %count1 : tensor<2x1xf32, #compound.dims<parts, B @REG>>, tensor<1xi32, #compound.dims<B @REG>>) iter_args(%zero : !r) outs(!r) combine ["fold"] {
      ^bb5(%w2: tensor<1x1xf32, #compound.dims<parts, B @REG>>, %count2: tensor<1xi32, #compound.dims<B @REG>>, %old: !r):
        %t = compound.reduce add %w2 : tensor<1x1xf32, #compound.dims<parts, B @REG>> -> !r
        %new = compound.map add %old, %t : !r, !r -> !r
        schedule.yield %new : !r
      }
      schedule.yield %s : !r
    }
    dataflow.yield %p, %q : !P, !R
  } -> !P, !R
  dataflow.yield %z : !R
} -> !R
func.return %r : !R
}
