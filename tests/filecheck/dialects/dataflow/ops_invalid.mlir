// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<8xf32>):
  // CHECK: 'dataflow.program' op region takes (tensor<8xf32>), expected (tensor<4xf32>)
  dataflow.yield %x1 : tensor<8xf32>
} -> tensor<8xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  // CHECK: 'dataflow.program' op region yields (tensor<4xf32>), expected (tensor<8xf32>)
  dataflow.yield %x1 : tensor<4xf32>
} -> tensor<8xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  // CHECK: 'dataflow.kernel' op @k writes to a value that is no dataflow.buffer
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%x1 : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  dataflow.yield %y : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  // CHECK: 'dataflow.kernel' op region yields (tensor<8xf32>), expected (tensor<4xf32>)
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    %z = "test.op"(%x2) : (tensor<4xf32>) -> tensor<8xf32>
    dataflow.yield %z : tensor<8xf32>
  } -> tensor<4xf32>
  dataflow.yield %y : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  // CHECK: 'dataflow.kernel' op region ends in dataflow.yield
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    "test.termop"() : () -> ()
  } -> tensor<4xf32>
  dataflow.yield %y : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  // CHECK: 'dataflow.kernel' op @k shares its output buffer
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  dataflow.yield %b : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
// CHECK: 'dataflow.program' op kernel @second reads what an earlier kernel writes; put a dataflow.barrier between them
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  %c = dataflow.buffer : tensor<4xf32>
  %y = dataflow.kernel @first ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  %z = dataflow.kernel @second ins(%y : tensor<4xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  dataflow.yield %z : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
// CHECK: 'dataflow.program' op has two kernels @k
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  %c = dataflow.buffer : tensor<4xf32>
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  %z = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<4xf32>
  dataflow.yield %z : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
// CHECK: 'dataflow.program' op region ends in dataflow.yield
^bb0(%x1: tensor<4xf32>):
  "test.termop"() : () -> ()
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  // CHECK: 'dataflow.kernel' op region takes (tensor<8xf32>), expected (tensor<4xf32>)
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<8xf32>):
    %z = "test.op"(%x2) : (tensor<8xf32>) -> tensor<4xf32>
    dataflow.yield %z : tensor<4xf32>
  } -> tensor<4xf32>
  dataflow.yield %y : tensor<4xf32>
} -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
%r = dataflow.program ins(%x : tensor<4xf32>) {
^bb0(%x1: tensor<4xf32>):
  %b = dataflow.buffer : tensor<4xf32>
  // CHECK: 'dataflow.kernel' op results are (tensor<8xf32>), expected (tensor<4xf32>)
  %y = dataflow.kernel @k ins(%x1 : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x2: tensor<4xf32>):
    dataflow.yield %x2 : tensor<4xf32>
  } -> tensor<8xf32>
  dataflow.yield %x1 : tensor<4xf32>
} -> tensor<4xf32>

// -----

// CHECK: 'dataflow.kernel' expects parent op 'dataflow.program'
dataflow.kernel @k {
  dataflow.yield
}

// -----

// CHECK: 'dataflow.barrier' expects parent op 'dataflow.program'
dataflow.barrier

// -----

func.func @f() {
  // CHECK: 'dataflow.yield' expects parent op to be one of 'dataflow.kernel', 'dataflow.program'
  dataflow.yield
}

// -----

!T = tensor<7xf32, #compound.dims<T @HBM>>
!I = tensor<7xi32, #compound.dims<T @HBM>>
!V = tensor<9xf32, #compound.dims<V @HBM>>
func.func @adds_to_what_was_there(%x: !T, %i: !I) -> !V {
  %y = dataflow.program ins(%x, %i : !T, !I) {
  ^bb0(%a: !T, %b: !I):
    %out = dataflow.buffer : !V
    %s = dataflow.kernel @k ins(%a, %b : !T, !I) outs(%out : !V) {
    ^bb1(%a1: !T, %b1: !I):
      %s1 = compound.scatter_add %a1, %b1 into "V" : !T, !I -> !V
      dataflow.yield %s1 : !V
    } -> !V
    dataflow.yield %s : !V
  } -> !V
  func.return %y : !V
}
// CHECK: 'dataflow.kernel' op @k adds to its output, so the dataflow.buffer of it is zeroed

// -----

!A = tensor<8xf32, #compound.dims<M @HBM>>
!t = tensor<4xf32, #compound.dims<M @HBM>>
func.func @f(%a: !A) -> (!A, !A) {
  %r, %s = dataflow.program ins(%a : !A) {
  ^bb0(%a1: !A):
    %b = dataflow.buffer : !A
    %c = dataflow.buffer : !A
    // CHECK: 'dataflow.kernel' op @k has several nodes, and its programs are clusters; leave cluster out, or launch them one by one
    %x, %y = dataflow.kernel @k ins(%a1 : !A) outs(%b, %c : !A, !A) {
    ^bb0(%a2: !A):
      %u = schedule.spatial on grid [g0: M = 2] ins(%a2 : !A) outs(!A) attributes {schedule.launch = #schedule.launch<warps = 4, stages = 2, group = 1, cluster = 2>} {
      ^bb0(%t: !t):
        schedule.yield %t : !t
      }
      %v = schedule.spatial on grid [g0: M = 2] ins(%a2 : !A) outs(!A) {
      ^bb0(%t: !t):
        schedule.yield %t : !t
      }
      dataflow.yield %u, %v : !A, !A
    } -> !A, !A
    dataflow.yield %x, %y : !A, !A
  } -> !A, !A
  func.return %r, %s : !A, !A
}
