// RUN: comet-opt %s -p 'nested{module=inner passes="expand-maps,sink-renames"}' | filecheck %s
// RUN: comet-opt %s --verify-diagnostics -p 'nested{module=other passes=expand-maps}' | filecheck %s --check-prefix=NONE

// NONE: nested: there is no module @other inside the module; there are inner

// Passes run in the module that is named, and in no other.
!X = tensor<6xf32, #compound.dims<M>>
func.func @f(%x: !X) -> !X {
  %y = compound.map neg %x : !X -> !X
  func.return %y : !X
}
builtin.module @inner {
  func.func @f(%x: !X) -> !X {
    %y = compound.map neg %x : !X -> !X
    func.return %y : !X
  }
}

// CHECK:      %y = compound.map neg %x
// CHECK:      builtin.module @inner
// CHECK:      %y = compound.map mult %x, %number
