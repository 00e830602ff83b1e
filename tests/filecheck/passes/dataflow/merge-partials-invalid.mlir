// RUN: comet-opt %s --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},fuse{strategy=none},tile,outline-kernels,merge-partials{merge=sums_e_kernel}' | filecheck %s

!x = tensor<24x40xf32, #compound.dims<M, K>>

// CHECK: merge-partials: merge names sums_e_kernel, which is no kernel whose last program can merge; use auto, last or launch

func.func @sums(%x: !x) -> !x {
  %e = compound.map exp %x : !x -> !x
  %f = compound.map exp %e : !x -> !x
  func.return %f : !x
}
