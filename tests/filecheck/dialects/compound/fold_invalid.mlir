// RUN: comet-opt %s --split-input-file --verify-diagnostics | filecheck %s

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op no input has the folded dimension K
%r = compound.fold over "K" ins(%c : !MN) init(%i : !M) step {
^bb0(%t: !MN, %old: !M):
  compound.yield %old : !M
} merge {
^bb0(%x: !M, %y: !M):
  compound.yield %x : !M
} -> !M

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
%c = "test.op"() : () -> !MN
// CHECK: 'compound.fold' op iter_arg tensor<4x2xf32, #compound.dims<M, N>> still has the folded dimension N
%r = compound.fold over "N" ins(%c : !MN) init(%c : !MN) step {
^bb0(%t: !MN, %old: !MN):
  compound.yield %old : !MN
} merge {
^bb0(%x: !MN, %y: !MN):
  compound.yield %x : !MN
} -> !MN

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op region step takes (tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>>), got (tensor<4xf32, #compound.dims<M>>)
%r = compound.fold over "N" ins(%c : !MN) init(%i : !M) step {
^bb0(%old: !M):
  compound.yield %old : !M
} merge {
^bb0(%x: !M, %y: !M):
  compound.yield %x : !M
} -> !M

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op region merge takes (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>), got (tensor<4xf32, #compound.dims<M>>)
%r = compound.fold over "N" ins(%c : !MN) init(%i : !M) step {
^bb0(%t: !MN, %old: !M):
  compound.yield %old : !M
} merge {
^bb0(%x: !M):
  compound.yield %x : !M
} -> !M

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op region step ends in compound.yield
%r = compound.fold over "N" ins(%c : !MN) init(%i : !M) step {
^bb0(%t: !MN, %old: !M):
  "test.termop"() : () -> ()
} merge {
^bb0(%x: !M, %y: !M):
  compound.yield %x : !M
} -> !M

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op region merge yields (tensor<4xf32, #compound.dims<M>>)
%r = compound.fold over "N" ins(%c : !MN) init(%i : !M) step {
^bb0(%t: !MN, %old: !M):
  compound.yield %old : !M
} merge {
^bb0(%x: !M, %y: !M):
  compound.yield %x, %y : !M, !M
} -> !M

// -----

!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
%c, %i = "test.op"() : () -> (!MN, !M)
// CHECK: 'compound.fold' op results have the types of the iter_args
%r = compound.fold over "N" ins(%c : !MN) init(%i : !M) step {
^bb0(%t: !MN, %old: !M):
  compound.yield %old : !M
} merge {
^bb0(%x: !M, %y: !M):
  compound.yield %x : !M
} -> !MN
