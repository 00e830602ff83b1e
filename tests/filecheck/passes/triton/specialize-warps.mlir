// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full copies=descriptors specialize=true factors="o: B=1 H=2 M=2 warps=4 stages=2; m_n: N=2"}' | comet-opt | filecheck %s --check-prefix TWO
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x1.yaml"},triton-distributed{strategy=full copies=descriptors specialize=true factors="o: B=1 H=2 M=2 warps=4 stages=3; m_n: N=2"}' | comet-opt | filecheck %s --check-prefix THREE

!x = tensor<1x2x256x64xbf16>

func.func @attention(%q: !x, %k: !x, %v: !x) -> !x {
  %o = compound.attention %q, %k, %v : (!x, !x, !x) -> !x
  func.return %o : !x
}

// TWO: tl.for warp_specialize %n : i32
// THREE-NOT: warp_specialize
