// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"},lower-to-comet' | filecheck %s

// CHECK: lower-to-comet: the module has 0 functions, and a set of COMET files holds one problem; keep one function per module
builtin.module {
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: @f is at the elementary level and this pass takes the schedule level; run fuse first
  %h = compound.map exp %a : !D -> !D
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: a node computes nothing but constants, which the COMET files do not hold; remove it, or compile without stream
  %h = schedule.temporal [M = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : tensor<8x32xf16, #compound.dims<M, N @DRAM>>):
    schedule.yield %a1 : tensor<8x32xf16, #compound.dims<M, N @DRAM>>
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>
!I = tensor<16x2xf16, #compound.dims<M, N @IB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    // CHECK: is fetched to OB and to IB by one node; split the node
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1, %a1 : !G, !G) outs(!G) {
    ^bb0(%a2 : !O, %a3 : !I):
      %h2 = compound.map exp %a2 : !O -> !O
      %h3 = compound.map max %h2, %a3 : !O, !I -> !O
      schedule.yield %h3 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D, %b : !D) -> !D {
  // CHECK: crosses the border of a node in which no op reads it; route it around the node
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a, %b : !D, !D) outs(!D) {
  ^bb0(%a1 : !G, %b1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      %h2 = compound.map exp %a2 : !O -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!S = tensor<16xf16, #compound.dims<M @DRAM>>

func.func @f(%a : !D, %z : !S) -> !S {
  // CHECK: lower-to-comet: the COMET files have no 'compound.fold', only loops over its steps; run fuse, which makes one of it
  %h = schedule.temporal [M = 2] ins(%a, %z : !D, !S) outs(!S) {
  ^bb0(%a1 : tensor<8x32xf16, #compound.dims<M, N @DRAM>>, %low : tensor<8xf16, #compound.dims<M @DRAM>>):
    %m = compound.fold over "N" ins(%a1 : tensor<8x32xf16, #compound.dims<M, N @DRAM>>)
        init(%low : tensor<8xf16, #compound.dims<M @DRAM>>) step {
    ^bb1(%chunk : tensor<8x32xf16, #compound.dims<M, N @DRAM>>, %old : tensor<8xf16, #compound.dims<M @DRAM>>):
      %now = compound.reduce max %chunk : tensor<8x32xf16, #compound.dims<M, N @DRAM>> -> tensor<8xf16, #compound.dims<M @DRAM>>
      %new = compound.map max %old, %now : tensor<8xf16, #compound.dims<M @DRAM>>, tensor<8xf16, #compound.dims<M @DRAM>> -> tensor<8xf16, #compound.dims<M @DRAM>>
      compound.yield %new : tensor<8xf16, #compound.dims<M @DRAM>>
    } merge {
    ^bb2(%x : tensor<8xf16, #compound.dims<M @DRAM>>, %y : tensor<8xf16, #compound.dims<M @DRAM>>):
      %new = compound.map max %x, %y : tensor<8xf16, #compound.dims<M @DRAM>>, tensor<8xf16, #compound.dims<M @DRAM>> -> tensor<8xf16, #compound.dims<M @DRAM>>
      compound.yield %new : tensor<8xf16, #compound.dims<M @DRAM>>
    } -> tensor<8xf16, #compound.dims<M @DRAM>>
    schedule.yield %m : tensor<8xf16, #compound.dims<M @DRAM>>
  }
  func.return %h : !S
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
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      // CHECK: lower-to-comet: 'compound.map' shares its loops with other ops, and the COMET files give every operation a nest of its own; put it into a temporal node alone
      %h2 = schedule.temporal [M = 2] ins(%a2 : !O) outs(!O) {
      ^bb0(%a3 : !T):
        %e = compound.map exp %a3 : !T -> !T
        %s = compound.map sqrt %e : !T -> !T
        schedule.yield %s : !T
      }
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!S = tensor<16xf16, #compound.dims<M @DRAM>>
!T = tensor<16x8xf16, #compound.dims<M, N @DRAM>>

func.func @f(%a : !D, %z : !S) -> !S {
  // CHECK: lower-to-comet: an iter_arg starts from tensor<16xf16, #compound.dims<M @DRAM>>, which is no constant, and the COMET files only say what a loop updates; start from a compound.fill
  %h = schedule.temporal [N = 4] ins(%a : !D) iter_args(%z : !S) outs(!S) combine ["fold"] {
  ^bb0(%a1 : !T, %old : !S):
    %now = compound.reduce max %a1 : !T -> !S
    %new = compound.map max %old, %now : !S, !S -> !S
    schedule.yield %new : !S
  }
  func.return %h : !S
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!W = tensor<16x32xf32, #compound.dims<M, N @DRAM>>

func.func @f(%a : !D) -> !W {
  // CHECK: is neither of what one op computes nor of what ops of its node read, and the COMET files have no casts of their own; put it into the node of the ops that read it
  %h = schedule.temporal [] ins(%a : !D) outs(!W) {
  ^bb0(%a1 : !D):
    %w = compound.cast %a1 : !D -> !W
    schedule.yield %w : !W
  }
  func.return %h : !W
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: the COMET files have no constant tensor<16x32xf16, #compound.dims<M, N @DRAM>>, only scalars; make it an argument of the function
  %h = schedule.temporal [] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !D):
    %z = compound.fill 0.000000e+00 : !D
    %w = compound.map max %a1, %z : !D, !D -> !D
    schedule.yield %w : !D
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      // CHECK: lower-to-comet: the COMET tool has no operation 'tanh'; write it with add, mult, div, max, exp and sqrt
      %h2 = compound.map tanh %a2 : !O -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x30xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: 'compound.map' cuts N = 30 into 16 tiles of 2; choose factors that divide, or pad the dimension
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      %h2 = compound.map exp %a2 : !O -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!T = tensor<8x16xf16, #compound.dims<M, N @DRAM>>
!G = tensor<8x4xf16, #compound.dims<M, N @GB>>
!O = tensor<8x1xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: the nests below one node loop over M and N in different orders, and the COMET files give a node one permutation; order their loops alike
  %e = schedule.temporal [M = 2, N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !T):
    %e1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a1 : !T) outs(!T) {
    ^bb0(%a2 : !G):
      %e2 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a2 : !G) outs(!G) {
      ^bb0(%a3 : !O):
        %e3 = compound.map exp %a3 : !O -> !O
        schedule.yield %e3 : !O
      }
      schedule.yield %e2 : !G
    }
    schedule.yield %e1 : !T
  }
  %h = schedule.temporal [N = 2, M = 2] ins(%e : !D) outs(!D) {
  ^bb0(%a1 : !T):
    %e1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a1 : !T) outs(!T) {
    ^bb0(%a2 : !G):
      %e2 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a2 : !G) outs(!G) {
      ^bb0(%a3 : !O):
        %e3 = compound.map sqrt %a3 : !O -> !O
        schedule.yield %e3 : !O
      }
      schedule.yield %e2 : !G
    }
    schedule.yield %e1 : !T
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!T = tensor<8x16xf16, #compound.dims<M, N @DRAM>>
!U = tensor<4x16xf16, #compound.dims<M, N @DRAM>>
!G = tensor<4x4xf16, #compound.dims<M, N @GB>>
!O = tensor<4x1xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: nested temporal nodes loop over M twice with another loop in between, and the COMET files give a dimension one loop per node; order the loops so that they meet
  %h = schedule.temporal [M = 2, N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a0 : !T):
    %h0 = schedule.temporal [M = 2] ins(%a0 : !T) outs(!T) {
    ^bb0(%a1 : !U):
      %e1 = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a1 : !U) outs(!U) {
      ^bb0(%a2 : !G):
        %e2 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a2 : !G) outs(!G) {
        ^bb0(%a3 : !O):
          %e3 = compound.map exp %a3 : !O -> !O
          schedule.yield %e3 : !O
        }
        schedule.yield %e2 : !G
      }
      schedule.yield %e1 : !U
    }
    schedule.yield %h0 : !T
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!I = tensor<16x2xf16, #compound.dims<M, N @IB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !D {
  // CHECK: lower-to-comet: no unit of kind VSIMD is joined to IB, where 'compound.map' has its values; move them with a spatial node
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !I):
      %h2 = compound.map exp %a2 : !I -> !I
      schedule.yield %h2 : !I
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!A = tensor<2x16x8xf16, #compound.dims<B, M, K @DRAM>>
!AG = tensor<2x16x8xf16, #compound.dims<B, M, K @GB>>
!AI = tensor<2x16x8xf16, #compound.dims<B, M, K @IB>>
!V = tensor<8x32xf16, #compound.dims<K, N @DRAM>>
!VG = tensor<8x8xf16, #compound.dims<K, N @GB>>
!VW = tensor<8x2xf16, #compound.dims<K, N @WB>>
!D = tensor<2x16x32xf16, #compound.dims<B, M, N @DRAM>>
!G = tensor<2x16x8xf16, #compound.dims<B, M, N @GB>>
!O = tensor<2x16x2xf16, #compound.dims<B, M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !A, %b : !V) -> !D {
  // CHECK: lower-to-comet: the tile of GEMM has B = 2 besides the dimensions of a product of two matrices, and the COMET tool would not count them; loop over B with tiles of 1
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a, %b : !A, !V) outs(!D) {
  ^bb0(%a1 : !AG, %b1 : !VG):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1, %b1 : !AG, !VG) outs(!G) {
    ^bb0(%a2 : !AI, %b2 : !VW):
      %h2 = compound.contract %a2, %b2 : !AI, !VW -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!A = tensor<16x8xf16, #compound.dims<M, K @DRAM>>
!AG = tensor<4x8xf16, #compound.dims<M, K @GB>>
!AI = tensor<1x8xf16, #compound.dims<M, K @IB>>
!V = tensor<8xf16, #compound.dims<K @DRAM>>
!VG = tensor<8xf16, #compound.dims<K @GB>>
!VW = tensor<8xf16, #compound.dims<K @WB>>
!D = tensor<16xf16, #compound.dims<M @DRAM>>
!G = tensor<4xf16, #compound.dims<M @GB>>
!O = tensor<1xf16, #compound.dims<M @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !A, %b : !V) -> !D {
  // CHECK: is no product of two matrices, which is all that the COMET tool can price; give vectors a second dimension of extent 1, or write it with reduce and map
  %h = schedule.spatial on @edge [cx: M = 2, cy: M = 2] ins(%a, %b : !A, !V) outs(!D) {
  ^bb0(%a1 : !AG, %b1 : !VG):
    %h1 = schedule.spatial on @edge [kx: M = 2, ky: M = 2] ins(%a1, %b1 : !AG, !VG) outs(!G) {
    ^bb0(%a2 : !AI, %b2 : !VW):
      %h2 = compound.contract %a2, %b2 : !AI, !VW -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h : !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!O = tensor<16x2xf16, #compound.dims<M, N @OB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> (!D, !D) {
  // CHECK: lower-to-comet: the function returns one of its arguments, and an output of the COMET files is made by an operation; do not return it
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!D) {
  ^bb0(%a1 : !G):
    %h1 = schedule.spatial on @edge [kx: N = 2, ky: N = 2] ins(%a1 : !G) outs(!G) {
    ^bb0(%a2 : !O):
      %h2 = compound.map exp %a2 : !O -> !O
      schedule.yield %h2 : !O
    }
    schedule.yield %h1 : !G
  }
  func.return %h, %a : !D, !D
}

// -----

!D = tensor<16x32xf16, #compound.dims<M, N @DRAM>>
!G = tensor<16x8xf16, #compound.dims<M, N @GB>>
!T = tensor<16x4xf16, #compound.dims<M, N @GB>>
!S = tensor<16xf16, #compound.dims<M @DRAM>>
!R = tensor<16xf16, #compound.dims<M @GB>>

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

func.func @f(%a : !D) -> !S {
  // CHECK: lower-to-comet: instances merge the partial results of a fold, and the COMET files have no such reduction; distribute another dimension
  %h = schedule.spatial on @edge [cx: N = 2, cy: N = 2] ins(%a : !D) outs(!S) combine ["fold"] {
  ^bb0(%a1 : !G):
    %low = compound.fill -6.5e+04 : !R
    %m = schedule.temporal [N = 2] ins(%a1 : !G) iter_args(%low : !R) outs(!R) combine ["fold"] {
    ^bb1(%a2 : !T, %old : !R):
      %top = compound.reduce max %a2 : !T -> !R
      %now = compound.map max %old, %top : !R, !R -> !R
      schedule.yield %now : !R
    }
    schedule.yield %m : !R
  } merge {
  ^bb2(%x : !R, %y : !R):
    %new = compound.map max %x, %y : !R, !R -> !R
    compound.yield %new : !R
  }
  func.return %h : !S
}
