// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!PUSH = !dataflow.channel<push gather K : !L -> !G>
!PULL = !dataflow.channel<pull gather R split M
  : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<2x2x8xf32, #compound.dims<R, M, K>>>
!FLAGS = !dataflow.flags<2, [M = 2]>

!HBM = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!PUSHED = !dataflow.channel<push gather K : !HBM -> tensor<4x16xf32, #compound.dims<M, K @HBM>>>
!STAGED = !dataflow.channel<pull gather K : !HBM -> tensor<4x16xf32, #compound.dims<M, K @HBM>>>
!MEMORY = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!TILE = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!REGISTERS = tensor<2x8xf32, #compound.dims<M, K @REG>>
collective.mesh @gpus {rank = 2}

%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  // CHECK:      %ch = dataflow.channel on @gpus ["rank"] blocks [M = 2] : !dataflow.channel<push gather K : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x16xf32, #compound.dims<M, K>>>
  // CHECK-NEXT: %st = dataflow.channel on @gpus ["rank"] blocks [] : !dataflow.channel<pull gather R split M : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<2x2x8xf32, #compound.dims<R, M, K>>>
  // CHECK-NEXT: dataflow.kernel @give ins(%x1, %ch, %st : {{.*}}) {
  // CHECK:        dataflow.push %x2 to %ch1 : tensor<4x8xf32, #compound.dims<M, K>>, !dataflow.channel<push {{.*}}>
  // CHECK-NEXT:   dataflow.stage %x2 to %st1 : tensor<4x8xf32, #compound.dims<M, K>>, !dataflow.channel<pull {{.*}}>
  // CHECK-NEXT:   dataflow.signal %ch1 covers(%st1 : !dataflow.channel<pull {{.*}}>) : !dataflow.channel<push {{.*}}>
  // CHECK-NEXT:   dataflow.yield
  // CHECK-GENERIC: "dataflow.push"(%x2, %ch1) <{operandSegmentSizes = array<i32: 1, 1, 0>}> :
  // CHECK-GENERIC: "dataflow.signal"(%st1, %ch1) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> :
  %ch = dataflow.channel on @gpus ["rank"] blocks [M = 2] : !PUSH
  %st = dataflow.channel on @gpus ["rank"] blocks [] : !PULL
  dataflow.kernel @give ins(%x1, %ch, %st : !L, !PUSH, !PULL) {
  ^bb0(%x2: !L, %ch1: !PUSH, %st1: !PULL):
    dataflow.push %x2 to %ch1 : !L, !PUSH
    dataflow.stage %x2 to %st1 : !L, !PULL
    dataflow.signal %ch1 covers(%st1 : !PULL) : !PUSH
    dataflow.yield
  }
  // CHECK-NEXT: }
  // CHECK-NEXT: dataflow.barrier local
  // CHECK-NEXT: dataflow.kernel @take ins(%ch, %st : {{.*}}) sources ["K"] destinations ["M"] shards {K = 15 : i64} {
  // CHECK:        dataflow.wait %ch1 : !dataflow.channel<push {{.*}}>
  // CHECK-NEXT:   %g = dataflow.read %ch1 : !dataflow.channel<push {{.*}}> -> tensor<4x16xf32, #compound.dims<M, K>>
  // CHECK-NEXT:   %h = dataflow.pull %st1 : !dataflow.channel<pull {{.*}}> -> tensor<2x2x8xf32, #compound.dims<R, M, K>>
  dataflow.barrier local
  dataflow.kernel @take ins(%ch, %st : !PUSH, !PULL) sources ["K"] destinations ["M"] shards {K = 15 : i64} {
  ^bb0(%ch1: !PUSH, %st1: !PULL):
    dataflow.wait %ch1 : !PUSH
    %g = dataflow.read %ch1 : !PUSH -> !G
    %h = dataflow.pull %st1 : !PULL -> tensor<2x2x8xf32, #compound.dims<R, M, K>>
    %m = "test.op"() : () -> !MEMORY
    %n = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%m : !MEMORY) outs(!MEMORY) {
    ^bb0(%t: !REGISTERS):
      schedule.yield %t : !REGISTERS
    }
    dataflow.yield
  }
  // CHECK:      %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !dataflow.channel<push {{.*}}>
  // CHECK-NEXT: %flags = dataflow.flags for %box writers 4 : !dataflow.channel<push {{.*}}> -> !dataflow.flags<2, [M = 2]>
  %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !PUSH
  %flags = dataflow.flags for %box writers 4 : !PUSH -> !FLAGS
  dataflow.kernel @both ins(%x1, %box, %flags : !L, !PUSH, !FLAGS) {
  ^bb0(%x2: !L, %box1: !PUSH, %flags1: !FLAGS):
    // CHECK:      %e = dataflow.epoch
    // CHECK-NEXT: dataflow.push %x2 to %box1 epoch %e : tensor<4x8xf32, #compound.dims<M, K>>, !dataflow.channel<push {{.*}}>
    // CHECK-NEXT: dataflow.signal %box1 flags %flags1 epoch %e release system fence : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
    // CHECK-NEXT: dataflow.signal %box1 flags %flags1 epoch %e relaxed gpu : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
    // CHECK-NEXT: dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 4 : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
    // CHECK-NEXT: %g = dataflow.read %box1 epoch %e : !dataflow.channel<push {{.*}}> -> tensor<4x16xf32, #compound.dims<M, K>>
    %e = dataflow.epoch
    dataflow.push %x2 to %box1 epoch %e : !L, !PUSH
    dataflow.signal %box1 flags %flags1 epoch %e release system fence : !PUSH, !FLAGS
    dataflow.signal %box1 flags %flags1 epoch %e relaxed gpu : !PUSH, !FLAGS
    dataflow.wait %box1 flags %flags1 epoch %e acquire system arrivals 4 : !PUSH, !FLAGS
    %g = dataflow.read %box1 epoch %e : !PUSH -> !G
    // CHECK: schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%m : {{.*}}) with(%box1, %flags1, %e : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>, !dataflow.epoch) outs({{.*}}) {
    // CHECK-NEXT: ^bb0(%t: {{.*}}, %box2: {{.*}}, %flags2: {{.*}}, %e1: !dataflow.epoch):
    // CHECK-NEXT:   %u, %v = dataflow.wait %box2 for(%t, %t : tensor<2x8xf32, #compound.dims<M, K @HBM>>, tensor<2x8xf32, #compound.dims<M, K @HBM>>) flags %flags2 epoch %e1 acquire system arrivals 4 : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
    // CHECK-NEXT:   %w = dataflow.wait %box2 own for(%u : tensor<2x8xf32, #compound.dims<M, K @HBM>>) flags %flags2 epoch %e1 acquire system arrivals 4 : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
    %m = "test.op"() : () -> !MEMORY
    %n = schedule.spatial on grid [g0: M = 2, g1: K = 2] ins(%m : !MEMORY) with(%box1, %flags1, %e : !PUSH, !FLAGS, !dataflow.epoch) outs(!MEMORY) {
    ^bb0(%t: !TILE, %box2: !PUSH, %flags2: !FLAGS, %e1: !dataflow.epoch):
      %u, %v = dataflow.wait %box2 for(%t, %t : !TILE, !TILE) flags %flags2 epoch %e1 acquire system arrivals 4 : !PUSH, !FLAGS
      %w = dataflow.wait %box2 own for(%u : !TILE) flags %flags2 epoch %e1 acquire system arrivals 4 : !PUSH, !FLAGS
      schedule.yield %w : !TILE
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// Programs store a tile to two channels, and signal both.
%given = "test.op"() : () -> !HBM
%q = dataflow.program ins(%given : !HBM) {
^bb0(%x1: !HBM):
  %box = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !PUSHED
  %own = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !STAGED
  %flags = dataflow.flags for %box writers 4 : !PUSHED -> !FLAGS
  dataflow.kernel @inside ins(%x1, %box, %own, %flags : !HBM, !PUSHED, !STAGED, !FLAGS) {
  ^bb0(%x2: !HBM, %box1: !PUSHED, %own1: !STAGED, %flags1: !FLAGS):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !HBM) with(%box1, %own1, %flags1, %e : !PUSHED, !STAGED, !FLAGS, !dataflow.epoch) outs(!HBM) {
    ^bb0(%t: !TILE, %box2: !PUSHED, %own2: !STAGED, %flags2: !FLAGS, %e1: !dataflow.epoch):
      // CHECK:      %u = schedule.copy
      // CHECK-NEXT: %s = dataflow.push %u to %box2 epoch %e1 : tensor<2x8xf32, #compound.dims<M, K @REG>>, !dataflow.channel<push {{.*}}> -> tensor<2x8xf32, #compound.dims<M, K @HBM>>
      // CHECK-NEXT: %v = dataflow.stage %u to %own2 epoch %e1 : tensor<2x8xf32, #compound.dims<M, K @REG>>, !dataflow.channel<pull {{.*}}> -> tensor<2x8xf32, #compound.dims<M, K @HBM>>
      // CHECK-NEXT: dataflow.signal %box2 covers(%own2, %s, %v : !dataflow.channel<pull {{.*}}>, tensor<2x8xf32, #compound.dims<M, K @HBM>>, tensor<2x8xf32, #compound.dims<M, K @HBM>>) flags %flags2 epoch %e1 release system fence : !dataflow.channel<push {{.*}}>, !dataflow.flags<2, [M = 2]>
      %u = schedule.copy %t : !TILE -> !REGISTERS
      %s = dataflow.push %u to %box2 epoch %e1 : !REGISTERS, !PUSHED -> !TILE
      %v = dataflow.stage %u to %own2 epoch %e1 : !REGISTERS, !STAGED -> !TILE
      dataflow.signal %box2 covers(%own2, %s, %v : !STAGED, !TILE, !TILE) flags %flags2 epoch %e1 release system fence : !PUSHED, !FLAGS
      schedule.yield %s : !TILE
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !HBM
} -> !HBM

// An input that lies where peers load it.
// CHECK: %s = dataflow.program ins(%x : {{.*}}) {
%s = dataflow.program ins(%x : !L) {
^bb0(%y: !L):
  // CHECK:      %in = dataflow.channel of %y on @gpus ["rank"] blocks [] : !dataflow.channel<pull gather R split M : {{.*}}>, tensor<4x8xf32, #compound.dims<M, K>>
  %in = dataflow.channel of %y on @gpus ["rank"] blocks [] : !PULL, !L
  %made = dataflow.buffer : !L
  dataflow.yield %made : !L
} -> !L
// CHECK: %t = dataflow.program ins(%x : {{.*}}) {
%t = dataflow.program ins(%x : !L) {
^bb0(%z: !L):
  // CHECK:      %in = dataflow.receive_buffer of %z slots 2 on @gpus ["rank"] : !dataflow.channel<pull gather R split M : {{.*}}>, tensor<4x8xf32, #compound.dims<M, K>>
  %in = dataflow.receive_buffer of %z slots 2 on @gpus ["rank"] : !PULL, !L
  %made = dataflow.buffer : !L
  dataflow.yield %made : !L
} -> !L
