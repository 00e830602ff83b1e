// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,tile,outline-kernels,persist-programs{kernels="sum_kernel"}' | filecheck %s --check-prefix NAME
// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,tile,outline-kernels,persist-programs{kernels="@sums_kernel=0"}' | filecheck %s --check-prefix NUMBER
// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,tile,outline-kernels,persist-programs{kernels="sums_kernel @sums_kernel=2"}' | filecheck %s --check-prefix TWICE
// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,outline-kernels,persist-programs{kernels="sums_kernel"}' | filecheck %s --check-prefix LAUNCH
// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse,tile,outline-kernels,persist-programs{kernels=""}' | filecheck %s --check-prefix EMPTY

// Kernels whose programs exchange are in tests/unit/dataflow/test_persist_programs.py.

!x = tensor<24x40xf32, #compound.dims<M, K>>
!y = tensor<24xf32, #compound.dims<M>>

// EMPTY: persist-programs: no kernel is named; write none for no kernel
// NAME: persist-programs: there is no kernel sum_kernel; name some of sums_kernel, or say all or none
// NUMBER: persist-programs: '@sums_kernel=0' is no number of programs; write one from 1, as in sums_kernel=2
// TWICE: persist-programs: kernel sums_kernel is named twice; name it once
// LAUNCH: persist-programs: kernel @sums_kernel has no launch numbers; run tile before outline-kernels

func.func @sums(%x: !x) -> !y {
  %rows = compound.reduce add %x : !x -> !y
  func.return %rows : !y
}
