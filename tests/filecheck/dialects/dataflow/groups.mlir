// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

// Programs of a group store, signal, and wait for the tiles of all, in a node.

!X = tensor<4x8xf32, #compound.dims<M, N @HBM>>
!V = tensor<4xf32, #compound.dims<M @HBM>>
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> !P>
!FL = !dataflow.flags<1, [M = 2]>
!E = !dataflow.epoch
collective.mesh @gpu {rank = 1, cta = 2} at {rank = "HBM", cta = "SMEM"}

func.func @f(%x: !X) -> !X {
%r = dataflow.program ins(%x : !X) {
^bb0(%x1: !X):
  // CHECK:      %ch = dataflow.receive_buffer slots 1 on @gpu ["cta"]
  // CHECK-NEXT: %fl = dataflow.flags for %ch writers 2 : {{.*}} -> !dataflow.flags<1, [M = 2]>
  %ch = dataflow.receive_buffer slots 1 on @gpu ["cta"] : !CH
  %fl = dataflow.flags for %ch writers 2 : !CH -> !FL
  %b = dataflow.buffer : !X
  // CHECK:      dataflow.kernel @k ins({{.*}}) coresident 2 {
  %y = dataflow.kernel @k ins(%x1, %ch, %fl : !X, !CH, !FL) outs(%b : !X) coresident 2 {
  ^bb0(%x2: !X, %ch1: !CH, %fl1: !FL):
    %e = dataflow.epoch
    %n = schedule.spatial @n on grid [g0: M = 2] ins(%x2 : !X) with(%ch1, %fl1, %e : !CH, !FL, !E) outs(!X) {
    ^bb1(%x3: tensor<2x8xf32, #compound.dims<M, N @HBM>>, %ch2: !CH, %fl2: !FL, %e2: !E):
      %o = schedule.spatial @o on @gpu [cta: N = 2] ins(%x3 : tensor<2x8xf32, #compound.dims<M, N @HBM>>) with(%ch2, %fl2, %e2 : !CH, !FL, !E) outs(tensor<2x8xf32, #compound.dims<M, N @HBM>>) {
      ^bb2(%x4: tensor<2x4xf32, #compound.dims<M, N @HBM>>, %ch3: !CH, %fl3: !FL, %e3: !E):
        %c = schedule.copy %x4 : tensor<2x4xf32, #compound.dims<M, N @HBM>> -> tensor<2x4xf32, #compound.dims<M, N @REG>>
        %m = compound.reduce max %c : tensor<2x4xf32, #compound.dims<M, N @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
        %s = dataflow.push %m to %ch3 epoch %e3 : tensor<2xf32, #compound.dims<M @REG>>, !CH -> tensor<2xf32, #compound.dims<M @HBM>>
        // CHECK: dataflow.signal %ch3 covers(%s : {{.*}}) flags %fl3 epoch %e3 release gpu fence
        dataflow.signal %ch3 covers(%s : tensor<2xf32, #compound.dims<M @HBM>>) flags %fl3 epoch %e3 release gpu fence : !CH, !FL
        // CHECK-NEXT: %t = dataflow.read_tile %ch3 of %s epoch %e3 : !dataflow.channel<{{.*}}>, tensor<2xf32, #compound.dims<M @HBM>> -> tensor<2x2xf32, #compound.dims<part, M @HBM>>
        // CHECK-GENERIC: "dataflow.read_tile"(%s, %ch3, %e3)
        %t = dataflow.read_tile %ch3 of %s epoch %e3 : !CH, tensor<2xf32, #compound.dims<M @HBM>> -> tensor<2x2xf32, #compound.dims<part, M @HBM>>
        // CHECK-NEXT: %w = dataflow.wait %ch3 for(%t : {{.*}}) flags %fl3 epoch %e3 acquire gpu arrivals 2
        %w = dataflow.wait %ch3 for(%t : tensor<2x2xf32, #compound.dims<part, M @HBM>>) flags %fl3 epoch %e3 acquire gpu arrivals 2 : !CH, !FL
        %l = schedule.copy %w : tensor<2x2xf32, #compound.dims<part, M @HBM>> -> tensor<2x2xf32, #compound.dims<part, M @REG>>
        %top = compound.reduce max %l : tensor<2x2xf32, #compound.dims<part, M @REG>> -> tensor<2xf32, #compound.dims<M @REG>>
        %d = compound.map sub %c, %top : tensor<2x4xf32, #compound.dims<M, N @REG>>, tensor<2xf32, #compound.dims<M @REG>> -> tensor<2x4xf32, #compound.dims<M, N @REG>>
        %z = schedule.copy %d : tensor<2x4xf32, #compound.dims<M, N @REG>> -> tensor<2x4xf32, #compound.dims<M, N @HBM>>
        schedule.yield %z : tensor<2x4xf32, #compound.dims<M, N @HBM>>
      }
      schedule.yield %o : tensor<2x8xf32, #compound.dims<M, N @HBM>>
    }
    dataflow.yield %n : !X
  } -> !X
  dataflow.yield %y : !X
} -> !X
func.return %r : !X
}
