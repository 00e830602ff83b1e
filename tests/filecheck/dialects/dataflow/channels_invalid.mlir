// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: a channel keeps the element type
%0 = "test.op"() : () -> !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<16xf16, #compound.dims<K>>>

// -----

// CHECK: a channel gathers N, which tensor<16xf32, #compound.dims<K>> does not have
%0 = "test.op"() : () -> !dataflow.channel<push gather N : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: a channel gathers one dimension and splits another, not K twice
%0 = "test.op"() : () -> !dataflow.channel<push gather K split K : tensor<8xf32, #compound.dims<K>> -> tensor<8xf32, #compound.dims<K>>>

// -----

// CHECK: a channel splits M, which tensor<8xf32, #compound.dims<K>> does not have
%0 = "test.op"() : () -> !dataflow.channel<push gather K split M : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: a channel keeps every dimension but K: tensor<4x8xf32, #compound.dims<M, K>> and tensor<2x16xf32, #compound.dims<M, K>>
%0 = "test.op"() : () -> !dataflow.channel<push gather K : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<2x16xf32, #compound.dims<M, K>>>

// -----

// CHECK: 'dataflow.channel' op there is no mesh @nowhere
%0 = dataflow.channel on @nowhere ["rank"] blocks [] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.channel' op K = 24 over 2 ranks is 12 each, got 8
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<24xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.channel' op R = 3 over 2 ranks is 2 each, got 1
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !dataflow.channel<push gather R : tensor<8xf32, #compound.dims<K>> -> tensor<3x8xf32, #compound.dims<R, K>>>

// -----

// CHECK: 'dataflow.channel' op M = 4 over 2 ranks is 2 each, got 4
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !dataflow.channel<push gather K split M : tensor<4x8xf32, #compound.dims<M, K>> -> tensor<4x16xf32, #compound.dims<M, K>>>

// -----

// CHECK: 'dataflow.channel' op cuts blocks along N, which tensor<4x8xf32, #compound.dims<M, K>> does not have
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [N = 2] : !CH

// -----

// CHECK: 'dataflow.channel' op cuts blocks along M twice
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [M = 2, M = 2] : !CH

// -----

// CHECK: 'dataflow.channel' op cannot cut K = 8 into 5 blocks of 2
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [K = 5] : !CH

// -----

// CHECK: 'dataflow.receive_buffer' op has at least one slot
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 0 on @gpus ["rank"] : !CH

// -----

// CHECK: 'dataflow.flags' op is for a dataflow.receive_buffer
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !CH
%f = dataflow.flags for %0 writers 1 : !CH -> !dataflow.flags<2, []>

// -----

// CHECK: 'dataflow.flags' op 2 ranks signal, the flags are for 3
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
%f = dataflow.flags for %0 writers 1 : !CH -> !dataflow.flags<3, []>

// -----

// CHECK: 'dataflow.flags' op a flag has at least one writer
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
%f = dataflow.flags for %0 writers 0 : !CH -> !dataflow.flags<2, []>

// -----

// CHECK: 'dataflow.push' expects parent op to be one of 'dataflow.kernel', 'schedule.spatial', 'schedule.temporal'
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !CH
%x = "test.op"() : () -> !L
dataflow.push %x to %0 : !L, !CH

// -----

// CHECK: 'dataflow.push' op is for a push channel, this is a pull channel
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    dataflow.push %x2 to %ch1 : !G, !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.push' op the channel transfers tensor<4x8xf32, #compound.dims<M, K>>, not tensor<4x16xf32, #compound.dims<M, K>>
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    dataflow.push %x2 to %ch1 : !G, !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.stage' op is for a pull channel, this is a push channel
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    dataflow.stage %x2 to %ch1 : !G, !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.read' op is for a push channel, this is a pull channel
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %g = dataflow.read %ch1 : !CH -> !G
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.pull' op is for a pull channel, this is a push channel
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %g = dataflow.pull %ch1 : !CH -> !G
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.read' op receivers read tensor<4x16xf32, #compound.dims<M, K>>, not tensor<4x8xf32, #compound.dims<M, K>>
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %g = dataflow.read %ch1 : !CH -> !L
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.signal' op has flags, an epoch, semantics, a scope, or none of these
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    "dataflow.signal"(%ch1) <{scope = #dataflow.scope gpu, operandSegmentSizes = array<i32: 0, 1, 0, 0>}> : (!CH) -> ()
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.signal' op covers a channel twice; name each once
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    dataflow.signal %ch1 covers(%ch1 : !CH) : !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.wait' op has flags, an epoch, semantics, a scope, arrivals, or none of these
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    "dataflow.wait"(%ch1) <{arrivals = 2 : i64, operandSegmentSizes = array<i32: 0, 1, 0, 0>}> : (!CH) -> ()
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.channel' op no mesh axis is named
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus [] blocks [] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.receive_buffer' op mesh @gpus has no axis 'node'; its axes are rank
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["node"] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.receive_buffer' op axis 'rank' is named twice
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["rank", "rank"] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<16xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.receive_buffer' op K = 24 over 2 ranks is 12 each, got 8
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !dataflow.channel<push gather K : tensor<8xf32, #compound.dims<K>> -> tensor<24xf32, #compound.dims<K>>>

// -----

// CHECK: 'dataflow.flags' op cuts blocks along N, which tensor<4x8xf32, #compound.dims<M, K>> does not have
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
%f = dataflow.flags for %0 writers 1 : !CH -> !dataflow.flags<2, [N = 2]>

// -----

// CHECK: 'dataflow.stage' op the channel transfers tensor<4x8xf32, #compound.dims<M, K>>, not tensor<4x16xf32, #compound.dims<M, K>>
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    dataflow.stage %x2 to %ch1 : !G, !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.pull' op receivers read tensor<4x16xf32, #compound.dims<M, K>>, not tensor<4x8xf32, #compound.dims<M, K>>
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%ch : !CH) {
  ^bb0(%ch1: !CH):
    %g = dataflow.pull %ch1 : !CH -> !L
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.kernel' op @k takes a channel, flags or counters twice; one argument each is enough
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%ch, %ch : !CH, !CH) {
  ^bb0(%one: !CH, %other: !CH):
    dataflow.wait %one : !CH
    %g = dataflow.read %other : !CH -> !G
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.epoch' expects parent op 'dataflow.kernel'
%e = dataflow.epoch

// -----

// CHECK: 'dataflow.wait' expects parent op to be one of 'dataflow.kernel', 'schedule.spatial', 'schedule.temporal'
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !CH
dataflow.wait %0 : !CH

// -----

// CHECK: 'dataflow.read' expects parent op 'dataflow.kernel'
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%0 = dataflow.channel on @gpus ["rank"] blocks [] : !CH
%g = dataflow.read %0 : !CH -> !G

// -----

// CHECK: 'dataflow.push' op concatenates K over axis 'rank', along which its operand is replicated
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !L) -> !L {
  %all = collective.spmd on @gpus ins(%x : !L) sharded [{}] outs(!L) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
      dataflow.kernel @k ins(%x1, %ch : !L, !CH) {
      ^bb0(%x2: !L, %ch1: !CH):
        dataflow.push %x2 to %ch1 : !L, !CH
        dataflow.yield
      }
      dataflow.yield %x1 : !L
    } -> !L
    collective.yield %r : !L
  }
  func.return %all : !L
}

// -----

// CHECK: 'dataflow.channel' op of a tensor<4x8xf32, #compound.dims<M, K>>: it has to be a pull channel that carries this
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.channel of %x1 on @gpus ["rank"] blocks [] : !CH, !L
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.receive_buffer' op of a tensor<4x16xf32, #compound.dims<M, K>>: it has to be a pull channel that carries this
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %g = dataflow.buffer : !G
  %box = dataflow.receive_buffer of %g slots 2 on @gpus ["rank"] : !CH, !G
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.receive_buffer' op is of what is no input of its program; stage it
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %made = dataflow.buffer : !L
  %box = dataflow.receive_buffer of %made slots 2 on @gpus ["rank"] : !CH, !L
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.channel' op is of an input that others read, who find it nowhere else; stage it
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.channel of %x1 on @gpus ["rank"] blocks [] : !CH, !L
  %box = dataflow.receive_buffer of %x1 slots 2 on @gpus ["rank"] : !CH, !L
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.channel' op is of an input, which is there as a whole; cut no blocks
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.channel of %x1 on @gpus ["rank"] blocks [M = 2] : !CH, !L
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.channel' op concatenates K over axis 'rank', along which its operand is replicated
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
func.func @f(%x: !L) -> !L {
  %all = collective.spmd on @gpus ins(%x : !L) sharded [{}] outs(!L) sharded [{}] {
  ^bb0(%l: !L):
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %ch = dataflow.channel of %x1 on @gpus ["rank"] blocks [] : !CH, !L
      %b = dataflow.buffer : !L
      dataflow.yield %b : !L
    } -> !L
    collective.yield %r : !L
  }
  func.return %all : !L
}

// -----

// CHECK: 'dataflow.flags' op is for an input, which is there as a whole; cut no blocks
!L = tensor<4x8xf32, #compound.dims<M, K>>
!G = tensor<4x16xf32, #compound.dims<M, K>>
!CH = !dataflow.channel<pull gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %box = dataflow.receive_buffer of %x1 slots 2 on @gpus ["rank"] : !CH, !L
  %flags = dataflow.flags for %box writers 1 : !CH -> !dataflow.flags<2, [M = 2]>
  %b = dataflow.buffer : !L
  dataflow.yield %b : !L
} -> !L

// -----

// CHECK: 'dataflow.kernel' op @k names K in its sources; name dimensions that its nodes loop over, each once
!G = tensor<4x16xf32, #compound.dims<M, K>>
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  dataflow.kernel @k ins(%x1 : !G) sources ["K"] {
  ^bb0(%x2: !G):
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.kernel' op @k has no positive number of elements of K in shards
!G = tensor<4x16xf32, #compound.dims<M, K>>
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  dataflow.kernel @k ins(%x1 : !G) shards {K = 0 : i64} {
  ^bb0(%x2: !G):
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.wait' op takes views in a node, and only there; in a kernel it is for what is read of its channel
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %w = dataflow.wait %ch1 for(%x2 : !G) : !CH
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.wait' op takes views in a node, and only there; in a kernel it is for what is read of its channel
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !G) with(%ch1 : !CH) outs(!G) {
    ^bb0(%t: !T, %ch2: !CH):
      dataflow.wait %ch2 : !CH
      schedule.yield %t : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.wait' op in a node has flags; run lower-channels first
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x16xf32, #compound.dims<M, K @HBM>>
!CH = !dataflow.channel<push gather K : !L -> !G>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !G
%r = dataflow.program ins(%x : !G) {
^bb0(%x1: !G):
  %ch = dataflow.channel on @gpus ["rank"] blocks [] : !CH
  dataflow.kernel @k ins(%x1, %ch : !G, !CH) {
  ^bb0(%x2: !G, %ch1: !CH):
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !G) with(%ch1 : !CH) outs(!G) {
    ^bb0(%t: !T, %ch2: !CH):
      %w = dataflow.wait %ch2 for(%t : !T) : !CH
      schedule.yield %t : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !G
} -> !G

// -----

// CHECK: 'dataflow.push' op returns what it has stored in a node, and only there
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %s = dataflow.push %x2 to %ch1 epoch %e : !L, !CH -> !L
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.push' op returns what it has stored in a node, and only there
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) with(%ch1, %fl1, %e : !CH, !F, !dataflow.epoch) outs(!L) {
    ^bb0(%t: !T, %ch2: !CH, %f: !F, %e1: !dataflow.epoch):
      %u = schedule.copy %t : !T -> !t
      %v = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !T
      dataflow.push %u to %ch2 epoch %e1 : !t, !CH
      schedule.yield %v : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.push' op stores tensor<2x8xf32, #compound.dims<M, K @REG>> at HBM, where the channel is, not as tensor<2x8xf32, #compound.dims<M, K @REG>>
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) with(%ch1, %fl1, %e : !CH, !F, !dataflow.epoch) outs(!L) {
    ^bb0(%t: !T, %ch2: !CH, %f: !F, %e1: !dataflow.epoch):
      %u = schedule.copy %t : !T -> !t
      %v = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !T
      %w = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !t
      schedule.yield %v : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.push' op the channel transfers tensor<4x8xf32, #compound.dims<M, K @HBM>>, of which tensor<2xf32, #compound.dims<M @REG>> is no tile
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) with(%ch1, %fl1, %e : !CH, !F, !dataflow.epoch) outs(!L) {
    ^bb0(%t: !T, %ch2: !CH, %f: !F, %e1: !dataflow.epoch):
      %u = schedule.copy %t : !T -> !t
      %v = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !T
      %r1 = compound.reduce add %u : !t -> tensor<2xf32, #compound.dims<M @REG>>
      %w = dataflow.push %r1 to %ch2 epoch %e1 : tensor<2xf32, #compound.dims<M @REG>>, !CH -> tensor<2xf32, #compound.dims<M @HBM>>
      schedule.yield %v : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.signal' op lists what has been stored in a node, and only there
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    dataflow.signal %ch1 covers(%x2 : !L) flags %fl1 epoch %e release system fence : !CH, !F
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.signal' op lists what has been stored in a node, and only there
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) with(%ch1, %fl1, %e : !CH, !F, !dataflow.epoch) outs(!L) {
    ^bb0(%t: !T, %ch2: !CH, %f: !F, %e1: !dataflow.epoch):
      %u = schedule.copy %t : !T -> !t
      %v = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !T
      dataflow.signal %ch2 flags %f epoch %e1 release system fence : !CH, !F
      schedule.yield %v : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.signal' op covers channels and what has been stored, not !dataflow.epoch
!L = tensor<4x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<4x16xf32, #compound.dims<M, K @HBM>>
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x8xf32, #compound.dims<M, K @REG>>
!CH = !dataflow.channel<push gather K : !L -> !G>
!F = !dataflow.flags<2, []>
collective.mesh @gpus {rank = 2}
%x = "test.op"() : () -> !L
%r = dataflow.program ins(%x : !L) {
^bb0(%x1: !L):
  %ch = dataflow.receive_buffer slots 2 on @gpus ["rank"] : !CH
  %fl = dataflow.flags for %ch writers 1 : !CH -> !F
  dataflow.kernel @k ins(%x1, %ch, %fl : !L, !CH, !F) {
  ^bb0(%x2: !L, %ch1: !CH, %fl1: !F):
    %e = dataflow.epoch
    %n = schedule.spatial on grid [g0: M = 2] ins(%x2 : !L) with(%ch1, %fl1, %e : !CH, !F, !dataflow.epoch) outs(!L) {
    ^bb0(%t: !T, %ch2: !CH, %f: !F, %e1: !dataflow.epoch):
      %u = schedule.copy %t : !T -> !t
      %v = dataflow.push %u to %ch2 epoch %e1 : !t, !CH -> !T
      dataflow.signal %ch2 covers(%v, %e1 : !T, !dataflow.epoch) flags %f epoch %e1 release system fence : !CH, !F
      schedule.yield %v : !T
    }
    dataflow.yield
  }
  dataflow.yield %x1 : !L
} -> !L

// -----

// CHECK: 'dataflow.signal' op a program signals ranks once, and so in no loop
!T = tensor<2x8xf32, #compound.dims<M, K @HBM>>
!t = tensor<2x4xf32, #compound.dims<M, K @HBM>>
!CH = !dataflow.channel<push gather K : !T -> tensor<2x16xf32, #compound.dims<M, K @HBM>>>
%x, %ch = "test.op"() : () -> (!T, !CH)
%n = schedule.temporal [K = 2] ins(%x : !T) with(%ch : !CH) outs(!T) {
^bb0(%t: !t, %ch1: !CH):
  dataflow.signal %ch1 covers(%t : !t) : !CH
  schedule.yield %t : !t
}
