// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!X = tensor<6x4xf32, #compound.dims<M, N>>
// CHECK: 'dataflow.mapping' op there is no module @f_1 beside the function; outline-mappings makes both
func.func @f(%x: !X) -> !X {
  %y = dataflow.mapping @f_1 ins(%x : !X) -> !X
  func.return %y : !X
}

// -----

!X = tensor<6x4xf32, #compound.dims<M, N>>
!T = tensor<6x4xf32, #compound.dims<N, M>>
// CHECK: 'dataflow.mapping' op has (tensor<6x4xf32, #compound.dims<M, N>>), and @f_1 takes (tensor<6x4xf32, #compound.dims<N, M>>)
func.func @f(%x: !X) -> !T {
  %y = dataflow.mapping @f_1 ins(%x : !X) -> !T
  func.return %y : !T
}
builtin.module @f_1 {
  func.func @f_1(%x: !T) -> !T {
    %y = compound.map exp %x : !T -> !T
    func.return %y : !T
  }
}

// -----

!X = tensor<6x4xf32, #compound.dims<M, N>>
!H = tensor<6x4xf16, #compound.dims<M, N>>
// CHECK: 'dataflow.mapping' op has (tensor<6x4xf16, #compound.dims<M, N>>), and @f_1 returns (tensor<6x4xf32, #compound.dims<M, N>>)
func.func @f(%x: !X) -> !H {
  %y = dataflow.mapping @f_1 ins(%x : !X) -> !H
  func.return %y : !H
}
builtin.module @f_1 {
  func.func @f_1(%x: !X) -> !X {
    %y = compound.map exp %x : !X -> !X
    func.return %y : !X
  }
}
