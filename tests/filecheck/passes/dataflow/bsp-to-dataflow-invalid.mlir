// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=fused}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=push blocks="gather: M=3"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=BLOCKS
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=push inputs=symmetric}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=PUSHED
// RUN: comet-opt %s -p 'attach-hardware{path="%root/samples/hardware/h200x8.yaml"},bsp-to-dataflow{pattern=pull inputs=symmetric}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=MADE

!L = tensor<9x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<9x64xf32, #compound.dims<M, K @HBM>>
!T = tensor<9x2xf32, #compound.dims<M, K @REG>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    // The kernel that copies what is gathered sends the input first: this is no mistake.
    // CHECK: dataflow.kernel @gather_land
    // MADE: dataflow.channel of %x1
    // MADE: dataflow.kernel @gather_land
    // CHECK: dataflow.push
    // CHECK: dataflow.wait
    // CHECK: dataflow.read
    // BLOCKS: bsp-to-dataflow: blocks M=3 does not cut M, of extent 9, into 3 tiles of a power of two; choose M=5
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %whole = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%x1 : !L) outs(%whole : !G) {
      ^bb0(%x2: !L):
        %y = collective.all_gather "K" %x2 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.yield %g : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}

// -----

!L = tensor<9x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<9x64xf32, #compound.dims<M, K @HBM>>
!T = tensor<3x8xf32, #compound.dims<M, K @REG>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !G) -> !G {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}] outs(!G) sharded [{}] {
  ^bb0(%l: !L):
    // CHECK: bsp-to-dataflow: pattern=fused does not apply to @gather, because of the kernel that makes %e: its tiles of 3 along M are no power of two, so that programs are no tiles; bsp, wait, pull and push apply
    %r = dataflow.program ins(%l : !L) {
    ^bb0(%x1: !L):
      %made = dataflow.buffer : !L
      %e = dataflow.kernel @make ins(%x1 : !L) outs(%made : !L) {
      ^bb0(%x2: !L):
        %n = schedule.spatial on grid [g0: M = 3] ins(%x2 : !L) outs(!L) {
        ^bb0(%t: !T):
          schedule.yield %t : !T
        }
        dataflow.yield %n : !L
      } -> !L
      dataflow.barrier
      %whole = dataflow.buffer : !G
      %g = dataflow.kernel @gather ins(%e : !L) outs(%whole : !G) {
      ^bb0(%e1: !L):
        %y = collective.all_gather "K" %e1 on @h200x8 ["rank"] : !L -> !G
        dataflow.yield %y : !G
      } -> !G
      dataflow.yield %g : !G
    } -> !G
    collective.yield %r : !G
  }
  func.return %all : !G
}

// -----

!L = tensor<8xf32, #compound.dims<M @HBM>>
!X = tensor<8x8xf32, #compound.dims<M, K @HBM>>
!G = tensor<8x64xf32, #compound.dims<M, K @HBM>>
collective.mesh @h200x8 {rank = 8} at {rank = "HBM"}
func.func @f(%x: !G) -> !L {
  %all = collective.spmd on @h200x8 ins(%x : !G) sharded [{K = ["rank"]}] outs(!L) sharded [{}] {
  ^bb0(%l: !X):
    // CHECK: bsp-to-dataflow: pattern=fused does not apply to @reduce: collective.all_reduce does more than move values; run lower-reductions before fuse, then bsp, wait, pull, push and fused apply
    // PUSHED: bsp-to-dataflow: inputs=symmetric does not apply to pattern=push, in which no kernel loads inputs from peers; pull and auto apply
    // MADE: bsp-to-dataflow: inputs=symmetric does not apply, because nothing that is gathered is an input of the program that only its collective takes; leave it out, and kernels keep for peers what they make, or copy it
    // BLOCKS: bsp-to-dataflow: blocks is for @gather, which is no collective of the program; it has @reduce
    %r = dataflow.program ins(%l : !X) {
    ^bb0(%x1: !X):
      %sums = dataflow.buffer : !L
      %whole = dataflow.buffer : !L
      %s = dataflow.kernel @sum ins(%x1 : !X) outs(%sums : !L) {
      ^bb0(%x2: !X):
        %y = compound.reduce add %x2 : !X -> !L
        dataflow.yield %y : !L
      } -> !L
      dataflow.barrier
      %g = dataflow.kernel @reduce ins(%s : !L) outs(%whole : !L) {
      ^bb0(%x2: !L):
        %y = collective.all_reduce add %x2 on @h200x8 ["rank"] : !L -> !L
        dataflow.yield %y : !L
      } -> !L
      dataflow.yield %g : !L
    } -> !L
    collective.yield %r : !L
  }
  func.return %all : !L
}
