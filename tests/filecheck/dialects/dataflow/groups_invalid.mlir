// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 'dataflow.read_tile' op is for a push channel, this is a pull channel
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<pull gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
%x, %ch = "test.op"() : () -> (!V, !CH)
%n = schedule.temporal [M = 2] ins(%x : !V) with(%ch : !CH) outs(!V) {
^bb0(%t: tensor<2xf32, #compound.dims<M @HBM>>, %ch1: !CH):
  %y = dataflow.read_tile %ch1 of %t : !CH, tensor<2xf32, #compound.dims<M @HBM>> -> tensor<2x2xf32, #compound.dims<part, M @HBM>>
  schedule.yield %t : tensor<2xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: 'dataflow.read_tile' op the channel transfers {{.*}}, of which {{.*}} is no tile
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
%x, %ch = "test.op"() : () -> (tensor<4xf32, #compound.dims<N @HBM>>, !CH)
%n = schedule.temporal [N = 2] ins(%x : tensor<4xf32, #compound.dims<N @HBM>>) with(%ch : !CH) outs(tensor<4xf32, #compound.dims<N @HBM>>) {
^bb0(%t: tensor<2xf32, #compound.dims<N @HBM>>, %ch1: !CH):
  %y = dataflow.read_tile %ch1 of %t : !CH, tensor<2xf32, #compound.dims<N @HBM>> -> tensor<2x4xf32, #compound.dims<part, M @HBM>>
  schedule.yield %t : tensor<2xf32, #compound.dims<N @HBM>>
}

// -----

// CHECK: 'dataflow.read_tile' op programs read tensor<2x2xf32, #compound.dims<part, M @HBM>>, not tensor<2x4xf32, #compound.dims<part, M @HBM>>
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
%x, %ch = "test.op"() : () -> (!V, !CH)
%n = schedule.temporal [M = 2] ins(%x : !V) with(%ch : !CH) outs(!V) {
^bb0(%t: tensor<2xf32, #compound.dims<M @HBM>>, %ch1: !CH):
  %y = dataflow.read_tile %ch1 of %t : !CH, tensor<2xf32, #compound.dims<M @HBM>> -> tensor<2x4xf32, #compound.dims<part, M @HBM>>
  schedule.yield %t : tensor<2xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: 'dataflow.flags' op 1 ranks signal, the flags are for 2
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
collective.mesh @gpu {rank = 1, cta = 2} at {rank = "HBM", cta = "SMEM"}
%x = "test.op"() : () -> !V
%r = dataflow.program ins(%x : !V) {
^bb0(%x1: !V):
  %ch = dataflow.receive_buffer slots 1 on @gpu ["cta"] : !CH
  %fl = dataflow.flags for %ch writers 2 : !CH -> !dataflow.flags<2, []>
  dataflow.yield %x1 : !V
} -> !V

// -----

// CHECK: 'dataflow.push' op root is the first program of a group; write it in a node over a mesh axis inside a GPU
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
%x, %ch = "test.op"() : () -> (!V, !CH)
%n = schedule.temporal [M = 2] ins(%x : !V) with(%ch : !CH) outs(!V) {
^bb0(%t: tensor<2xf32, #compound.dims<M @HBM>>, %ch1: !CH):
  %s = dataflow.push root %t to %ch1 : tensor<2xf32, #compound.dims<M @HBM>>, !CH -> tensor<2xf32, #compound.dims<M @HBM>>
  schedule.yield %t : tensor<2xf32, #compound.dims<M @HBM>>
}

// -----

// CHECK: 'dataflow.signal' op root is the first program of a group; write it in a node over a mesh axis inside a GPU
!V = tensor<4xf32, #compound.dims<M @HBM>>
!CH = !dataflow.channel<push gather part : !V -> tensor<2x4xf32, #compound.dims<part, M @HBM>>>
%x, %ch = "test.op"() : () -> (!V, !CH)
%n = schedule.spatial on grid [g0: M = 2] ins(%x : !V) with(%ch : !CH) outs(!V) {
^bb0(%t: tensor<2xf32, #compound.dims<M @HBM>>, %ch1: !CH):
  %s = dataflow.push %t to %ch1 : tensor<2xf32, #compound.dims<M @HBM>>, !CH -> tensor<2xf32, #compound.dims<M @HBM>>
  dataflow.signal root %ch1 covers(%s : tensor<2xf32, #compound.dims<M @HBM>>) : !CH
  schedule.yield %t : tensor<2xf32, #compound.dims<M @HBM>>
}
