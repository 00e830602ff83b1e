// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose,stream,fuse{strategy=full},tile{factors="o: B=4 H=32 M=32 E=1 warps=4 stages=2 group=1; m_n: N=32; products_d: D=1"},specialize-tiles{kernels=all tiles=kept}' | filecheck %s --check-prefix KEPT
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},decompose,stream,fuse{strategy=full},tile{factors="o: B=4 H=32 M=32 E=1 warps=8 stages=2 group=1; m_n: N=32; products_d: D=1"},specialize-tiles{tiles=kept}' | filecheck %s --check-prefix LEFT
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/mi300x8.yaml"},decompose,stream,fuse{strategy=full},tile{factors="o: B=4 H=32 M=32 E=1 warps=8 stages=1 group=1; m_n: N=64; products_d: D=1"},specialize-tiles{kernels=all}' | filecheck %s --check-prefix LEFT
// RUN: not comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},decompose,fuse{strategy=none},specialize-tiles' 2>&1 | filecheck %s --check-prefix EDGE

!x = tensor<4x32x4096x128xbf16>

func.func @attention(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v : (!x, !x, !x) -> !x
  func.return %o : !x
}

// KEPT: comet.plan = "o: B=4 H=32 M=32 E=1 warps=4 stages=2 group=1 specialize=1; m_n: N=32; products_d: D=1"
// KEPT: #schedule.launch<warps = 4, stages = 2, group = 1, specialize>
// LEFT: #schedule.launch<warps = 8, stages = {{[12]}}, group = 1>
// EDGE: specialize-tiles: hardware @edge is no GPU
