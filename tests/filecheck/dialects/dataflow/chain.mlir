// RUN: comet-opt %s | comet-opt | filecheck %s
// RUN: comet-opt %s --print-op-generic | comet-opt | filecheck %s

!X = tensor<6x4xf32, #compound.dims<M, N>>
func.func @f(%x: !X) -> !X {
  %y = dataflow.mapping @f_1 ins(%x : !X) -> !X
  func.return %y : !X
}
builtin.module @f_1 {
  func.func @f_1(%x: !X) -> !X {
    %y = compound.map exp %x : !X -> !X
    func.return %y : !X
  }
}

// CHECK:      %y = dataflow.mapping @f_1 ins(%x : tensor<6x4xf32, #compound.dims<M, N>>) -> tensor<6x4xf32, #compound.dims<M, N>>
// CHECK:      builtin.module @f_1 {
