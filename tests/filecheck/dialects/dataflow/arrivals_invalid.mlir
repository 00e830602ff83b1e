// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 'dataflow.arrive' op has no partial results; list what programs store
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c : !P, !C) {
  ^bb1(%p: !P, %c1: !C):
    "dataflow.arrive"(%c1) <{operandSegmentSizes = array<i32: 0, 1, 0>, arrivals = 2 : i64, semantics = #dataflow.semantics acq_rel, scope = #dataflow.scope gpu}> : (!C) -> ()
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' op is for several programs, at least 2, not 1
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c : !P, !C) {
  ^bb1(%p: !P, %c1: !C):
    %all = dataflow.arrive %p at %c1 arrivals 1 acq_rel gpu fence : !P at !C
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' op cuts blocks along N, which {{.*}} does not have
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[N = 2]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c : !P, !C) {
  ^bb1(%p: !P, %c1: !C):
    %all = dataflow.arrive %p at %c1 arrivals 2 acq_rel gpu fence : !P at !C
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' op cuts blocks along M twice
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2, M = 2]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c : !P, !C) {
  ^bb1(%p: !P, %c1: !C):
    %all = dataflow.arrive %p at %c1 arrivals 2 acq_rel gpu fence : !P at !C
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' op cannot cut M = 4 into 3 blocks of 2
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 3]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c : !P, !C) {
  ^bb1(%p: !P, %c1: !C):
    %all = dataflow.arrive %p at %c1 arrivals 2 acq_rel gpu fence : !P at !C
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' expects parent op 'dataflow.kernel'
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2]>
func.func @f(%p: !P, %c1: !C) {
  %all = dataflow.arrive %p at %c1 arrivals 2 acq_rel gpu fence : !P at !C
  func.return
}

// -----

// CHECK: 'dataflow.kernel' op @k takes a channel, flags or counters twice
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2]>
%x = "test.op"() : () -> !P
%r = dataflow.program ins(%x : !P) {
^bb0(%x1: !P):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%c, %c : !C, !C) {
  ^bb1(%c1: !C, %c2: !C):
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P

// -----

// CHECK: 'dataflow.arrive' op counts programs along dimensions without counters: tensor<2xi32, #compound.dims<B @HBM>>
!P = tensor<2x4xf32, #compound.dims<part, M @HBM>>
!C = !dataflow.counters<[M = 2]>
!N = tensor<2xi32, #compound.dims<B @HBM>>
%x, %n = "test.op"() : () -> (!P, !N)
%r = dataflow.program ins(%x, %n : !P, !N) {
^bb0(%x1: !P, %n1: !N):
  %c = dataflow.counters : !C
  dataflow.kernel @k ins(%x1, %c, %n1 : !P, !C, !N) {
  ^bb1(%p: !P, %c1: !C, %n2: !N):
    %all = dataflow.arrive %p at %c1 arrivals 2 count %n2 : !N acq_rel gpu fence : !P at !C
    dataflow.yield
  }
  dataflow.yield %x1 : !P
} -> !P
