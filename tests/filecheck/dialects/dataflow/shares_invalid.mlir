// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 'dataflow.shares' op has tiles, positions of each and runs, 1 or more
!L = tensor<3xi32, #compound.dims<B @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
%l = "test.op"() : () -> !L
%r = dataflow.program ins(%l : !L) {
^bb0(%l1: !L):
  dataflow.kernel @k ins(%l1 : !L) {
  ^bb1(%l2: !L):
    %f, %e, %c = dataflow.shares of %l2 offset 0 tiles 4 of 2 runs 0 : !L -> !N, !N, !L
    dataflow.yield
  }
  dataflow.yield %l1 : !L
} -> !L

// -----

// CHECK: 'dataflow.shares' op first and end tiles have the parts of a sequence, at least 2, and B, got tensor<3x2xi32
!L = tensor<3xi32, #compound.dims<B @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
%l = "test.op"() : () -> !L
%r = dataflow.program ins(%l : !L) {
^bb0(%l1: !L):
  dataflow.kernel @k ins(%l1 : !L) {
  ^bb1(%l2: !L):
    %f, %e, %c = dataflow.shares of %l2 offset 0 tiles 4 of 2 runs 2 : !L -> tensor<3x2xi32, #compound.dims<B, part @HBM>>, !N, !L
    dataflow.yield
  }
  dataflow.yield %l1 : !L
} -> !L

// -----

// CHECK: 'dataflow.shares' op counts the parts along B, got tensor<2xi32
!L = tensor<3xi32, #compound.dims<B @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
%l = "test.op"() : () -> !L
%r = dataflow.program ins(%l : !L) {
^bb0(%l1: !L):
  dataflow.kernel @k ins(%l1 : !L) {
  ^bb1(%l2: !L):
    %f, %e, %c = dataflow.shares of %l2 offset 0 tiles 4 of 2 runs 2 : !L -> !N, !N, tensor<2xi32, #compound.dims<part @HBM>>
    dataflow.yield
  }
  dataflow.yield %l1 : !L
} -> !L

// -----

// CHECK: 'dataflow.shares' op lengths have one dimension, got tensor<3x4xi32
!L = tensor<3x4xi32, #compound.dims<B, C @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
%l = "test.op"() : () -> !L
%r = dataflow.program ins(%l : !L) {
^bb0(%l1: !L):
  dataflow.kernel @k ins(%l1 : !L) {
  ^bb1(%l2: !L):
    %f, %e, %c = dataflow.shares of %l2 offset 0 tiles 4 of 2 runs 2 : !L -> !N, !N, !L
    dataflow.yield
  }
  dataflow.yield %l1 : !L
} -> !L

// -----

// CHECK: 'dataflow.shares' expects parent op 'dataflow.kernel'
!L = tensor<3xi32, #compound.dims<B @HBM>>
!N = tensor<2x3xi32, #compound.dims<part, B @HBM>>
func.func @f(%l: !L) {
  %f, %e, %c = dataflow.shares of %l offset 0 tiles 4 of 2 runs 2 : !L -> !N, !N, !L
  func.return
}

// -----

// CHECK: 'schedule.temporal' op end 1: the operand is one integer in each iteration, not tensor<2xi32
!X = tensor<8xf32, #compound.dims<S @REG>>
!n = tensor<2xi32, #compound.dims<B @REG>>
!r = tensor<f32, #compound.dims<@REG>>
%x, %n, %z = "test.op"() : () -> (!X, !n, !r)
%s = schedule.temporal [S = 4] end 1 ins(%x, %n : !X, !n) iter_args(%z : !r) outs(!r) combine ["fold"] {
^bb0(%x1: tensor<2xf32, #compound.dims<S @REG>>, %n1: !n, %old: !r):
  %t = compound.reduce add %x1 : tensor<2xf32, #compound.dims<S @REG>> -> !r
  schedule.yield %t : !r
}

// -----

// CHECK: 'schedule.temporal' op end 0: the operand has S, over which the node loops
!X = tensor<8xf32, #compound.dims<S @REG>>
!n = tensor<1xi32, #compound.dims<B @REG>>
!r = tensor<f32, #compound.dims<@REG>>
%x, %n, %z = "test.op"() : () -> (!X, !n, !r)
%s = schedule.temporal [S = 4] end 0 ins(%x, %n : !X, !n) iter_args(%z : !r) outs(!r) combine ["fold"] {
^bb0(%x1: tensor<2xf32, #compound.dims<S @REG>>, %n1: !n, %old: !r):
  %t = compound.reduce add %x1 : tensor<2xf32, #compound.dims<S @REG>> -> !r
  schedule.yield %t : !r
}

// -----

// CHECK: 'schedule.temporal' op first: the node has no end, before which its iterations run
!X = tensor<8xf32, #compound.dims<S @REG>>
!n = tensor<1xi32, #compound.dims<B @REG>>
!r = tensor<f32, #compound.dims<@REG>>
%x, %n, %z = "test.op"() : () -> (!X, !n, !r)
%s = schedule.temporal [S = 4] first 1 ins(%x, %n : !X, !n) iter_args(%z : !r) outs(!r) combine ["fold"] {
^bb0(%x1: tensor<2xf32, #compound.dims<S @REG>>, %n1: !n, %old: !r):
  %t = compound.reduce add %x1 : tensor<2xf32, #compound.dims<S @REG>> -> !r
  schedule.yield %t : !r
}

// -----

// CHECK: 'schedule.temporal' op end: iterations that do not run leave iter_args as they are, and the node has other results
!X = tensor<8xf32, #compound.dims<S @REG>>
!n = tensor<1xi32, #compound.dims<B @REG>>
!r = tensor<f32, #compound.dims<@REG>>
%x, %n, %z = "test.op"() : () -> (!X, !n, !r)
%s = schedule.temporal [S = 4] end 1 ins(%x, %n : !X, !n)  outs(!r) combine ["add"] {
^bb0(%x1: tensor<2xf32, #compound.dims<S @REG>>, %n1: !n):
  %t = compound.reduce add %x1 : tensor<2xf32, #compound.dims<S @REG>> -> !r
  schedule.yield %t : !r
}
