// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},lower-to-comet' | filecheck %s

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!DR = tensor<16xf16, #compound.dims<M @DRAM>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !DR {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!DR) combine ["same"] {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!GR) combine ["max"] {
    ^bb0(%a2 : !O):
      %h2 = compound.reduce max %a2 : !O -> !OR
      schedule.yield %h2 : !OR
    }
    // CHECK: lower-to-comet: 'collective.all_reduce' is at no level; run place-collectives first
    %r = collective.all_reduce max %h1 on @edge ["cx", "cy"] : !GR -> !GR
    schedule.yield %r : !GR
  }
  func.return %h : !DR
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x16xf16, #compound.dims<M, N @GB>>
!O = tensor<16x8xf16, #compound.dims<M, N @OB>>
!DR = tensor<16xf16, #compound.dims<M @DRAM>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @cores {x = 2, y = 2}

func.func @f(%a : !D) -> !DR {
  %h = schedule.spatial on @cores [x: N = 2] ins(%a : !D) outs(!DR) combine ["same"] {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @cores [y: N = 2] ins(%a1 : !G) outs(!GR) combine ["max"] {
    ^bb0(%a2 : !O):
      %h2 = compound.reduce max %a2 : !O -> !OR
      schedule.yield %h2 : !OR
    }
    // CHECK: lower-to-comet: @cores does not say at which memory level its axes begin; give it `at`, or use the mesh of the hardware
    %r = collective.all_reduce max %h1 on @cores ["x"] from "GB" to "GB" : !GR -> !GR
    schedule.yield %r : !GR
  }
  func.return %h : !DR
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!DR = tensor<16xf16, #compound.dims<M @DRAM>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !DR {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!DR) combine ["same"] {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!GR) combine ["max"] {
    ^bb0(%a2 : !O):
      %h2 = compound.reduce max %a2 : !O -> !OR
      schedule.yield %h2 : !OR
    }
    // CHECK: lower-to-comet: 'collective.all_reduce' goes from OB to GB, and a collective of the COMET files stays at one level; let a spatial node combine between levels
    %r = collective.all_reduce max %h1 on @edge ["cx", "cy"] from "OB" to "GB" : !GR -> !GR
    schedule.yield %r : !GR
  }
  func.return %h : !DR
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!DR = tensor<16xf16, #compound.dims<M @DRAM>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!GS = tensor<4xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !DR {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!DR) combine ["same"] {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!GR) combine ["max"] {
    ^bb0(%a2 : !O):
      %h2 = compound.reduce max %a2 : !O -> !OR
      schedule.yield %h2 : !OR
    }
    // CHECK: lower-to-comet: the COMET files have no 'collective.reduce_scatter'; place it as an all-reduce
    %s = collective.reduce_scatter max "M" %h1 on @edge ["cx", "cy"] from "GB" to "GB" : !GR -> !GS
    %r = collective.all_gather "M" %s on @edge ["cx", "cy"] from "GB" to "GB" : !GS -> !GR
    schedule.yield %r : !GR
  }
  func.return %h : !DR
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!T = tensor<8x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    // CHECK: lower-to-comet: the COMET tool drops nodes that are bound parallel, or never ends; bind them sequential or pipeline
    %e = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) attributes {schedule.bind = #schedule.binding<parallel>} {
    ^bb0(%a2 : !O):
      %e1 = compound.map exp %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    %s = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%e : !G) outs(!G) {
    ^bb0(%a2 : !O):
      %e1 = compound.map sqrt %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    schedule.yield %s : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!DR = tensor<16xf16, #compound.dims<M @DRAM>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !DR {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!DR) combine ["same"] {
  ^bb0(%a1 : !G):
    // CHECK: lower-to-comet: the COMET tool orders the stages of a pipeline with collectives by chance; bind them sequential
    %h0 = schedule.temporal [] ins(%a1 : !G) outs(!GR) {
    ^bb0(%a3 : !G):
      %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a3 : !G) outs(!GR) combine ["max"] attributes {schedule.bind = #schedule.binding<pipeline>} {
      ^bb0(%a2 : !O):
        %h2 = compound.reduce max %a2 : !O -> !OR
        schedule.yield %h2 : !OR
      }
      %r = collective.all_reduce max %h1 on @edge ["cx", "cy"] from "GB" to "GB" : !GR -> !GR
      schedule.yield %r : !GR
    }
    schedule.yield %h0 : !GR
  }
  func.return %h : !DR
}

// -----

!D = tensor<256x2048xf16, #compound.dims<M, N @DRAM>>
!G = tensor<256x512xf16, #compound.dims<M, N @GB>>
!O = tensor<256x512xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: the tiles do not fit OB: {{.*}} bytes together at {{.*}}, it holds 131072; choose smaller factors below OB
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %e = schedule.spatial on @edge [kx: N = 1, ky: N = 1] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      %e1 = compound.map exp %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    schedule.yield %e : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!L = tensor<16x8xf16, #compound.dims<M, N @OB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: a spatial node moves no value between levels, and the COMET files have no such node; nest what it holds into a neighbour
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %e = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!L) {
    ^bb0(%a2 : !O):
      %e1 = compound.map exp %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    %f = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%e : !L) outs(!L) {
    ^bb0(%a2 : !O):
      %e1 = compound.map sqrt %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    %g = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%f : !L) outs(!G) {
    ^bb0(%a2 : !O):
      %e1 = compound.map exp %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    schedule.yield %g : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!L = tensor<16x8xf16, #compound.dims<M, N @OB>>
!P = tensor<8x4xf16, #compound.dims<M, N @OB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: the COMET tool can price g only together with the node before it, which loops or spreads differently; give both the same factors
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %e = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!L) {
    ^bb0(%a2 : !O):
      %e1 = compound.map sqrt %a2 : !O -> !O
      schedule.yield %e1 : !O
    }
    %f = schedule.spatial on @edge [kx: M = 2, ky: N = 2] ins(%e : !L) outs(!G) {
    ^bb0(%a2 : !P):
      %f = compound.map sqrt %a2 : !P -> !P
      %g = compound.map exp %f : !P -> !P
      schedule.yield %g : !P
    }
    schedule.yield %f : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!L = tensor<16x8xf16, #compound.dims<M, N @OB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!GR = tensor<16xf16, #compound.dims<M @GB>>
!OR = tensor<16xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: the COMET tool cannot price a node that only touches e1, f, which no node around it moves, and no node comes before it to share a nest with; fuse it with its producer
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %e, %m = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!L, !GR) combine ["none", "max"] {
    ^bb0(%a2 : !O):
      %e1 = compound.map sqrt %a2 : !O -> !O
      %m1 = compound.reduce max %e1 : !O -> !OR
      schedule.yield %e1, %m1 : !O, !OR
    }
    %r = collective.all_reduce max %m on @edge ["cx", "cy"] from "GB" to "GB" : !GR -> !GR
    %g = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%e, %r : !L, !GR) outs(!G) {
    ^bb0(%e1 : !O, %r1 : !OR):
      %f = compound.map exp %e1 : !O -> !O
      %g1 = compound.map div %f, %r1 : !O, !OR -> !O
      schedule.yield %g1 : !O
    }
    schedule.yield %g : !G
  }
  func.return %h : !D
}
