// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'comet.constants' op constant 'm' is neither an integer nor a string
comet.constants {m = [1]}

// -----

comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  // CHECK: 'comet.declare' op EXP: no projection is given for its tensor 'C'
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M]>
}

// -----

comet.problem ins ["A"] outs ["C"] instance <M = 4, N = 2> {
  // CHECK: 'comet.declare' op EXP: tensor 'C' is indexed by N, which is not among the dimensions of the operation
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], C[N]>
}

// -----

// CHECK: 'comet.problem' op holds 'comet.constants'; only 'comet.declare' has a place in it
comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  comet.constants {}
}

// -----

// CHECK: 'comet.problem' op operations: 'EXP' is listed twice
comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], C[M]>
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], C[M]>
}

// -----

// CHECK: 'comet.problem' op EXP has the dimension N, whose size the instance does not give
comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  comet.declare "EXP" ins ["A"] out "C" dimensions ["N"] tensors <A[N], C[N]>
}

// -----

// CHECK: comet.sizes: the dimension name 'rows' is not a single letter, which is all the file format can read
comet.problem ins ["A"] outs ["C"] instance <rows = 4> {
}

// -----

// CHECK: comet.sizes: the dimension M is given twice
comet.problem ins ["A"] outs ["C"] instance <M = 4, M = 5> {
}

// -----

// CHECK: comet.sizes: M = 0 is not positive
comet.problem ins ["A"] outs ["C"] instance <M = 0> {
}

// -----

comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  // CHECK: comet.accesses: 'A' is listed twice
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], A[M], C[M]>
}

// -----

// CHECK: 'comet.mapping' op needs exactly one root, a temporal 'comet.tile'
comet.mapping {
}

// -----

// CHECK: 'comet.mapping' op needs exactly one root, a temporal 'comet.tile'
comet.mapping {
  comet.tile spatial permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op moves no tensor
  comet.tile temporal permutation "M" <> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op is temporal and has 2 rows of factors, time has only one
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4] x [M = 1]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    // CHECK: 'comet.tile' op B by EXP has 1 rows of factors, the first entry has 2
    comet.tile spatial permutation "M" <
      A by EXP, DRAM -> GB, 16 bits, [M = 4] x [M = 1],
      B by EXP, DRAM -> GB, 16 bits, [M = 4]
    > {
      comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
    }
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op A by EXP does not give one factor for each dimension of the permutation 'MN'
  comet.tile temporal permutation "MN" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  // CHECK: comet.entries: A by EXP: a precision of 256 bits is out of range, the file format holds 1 to 255
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 256 bits, [M = 4]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  // CHECK: comet.entries: A by EXP: M = 0 is not positive
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 0]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op has no child node
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    comet.binding sequential
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op holds 'comet.constants', which is no mapping node
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    comet.constants {}
  }
}

// -----

comet.mapping {
  // CHECK: 'comet.tile' op bindings are misplaced; each of its 2 nodes but the last has one binding right before it
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
    comet.binding sequential
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]>
  }
}

// -----

comet.mapping {
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    // CHECK: comet.steps: 'A' is listed twice
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1], A[M = 2]>
  }
}

// -----

comet.mapping {
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    // CHECK: 'comet.operation' op the scale of 'A' is not a string
    comet.operation exp "EXP" primitive <M = 1> steps <A[M = 1]> scale {A = 1 : i64}
  }
}

// -----

comet.mapping {
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    // CHECK: 'comet.collective' op c: a precision of 0 bits is out of range, the file format holds 1 to 255
    comet.collective gather "c" at "GB" in "A" out "A" src ["GB"] dest ["GB"] precision 0
  }
}

// -----

comet.mapping {
  comet.tile temporal permutation "M" <A by EXP, DRAM -> GB, 16 bits, [M = 4]> {
    // CHECK: 'comet.collective' op c: src and dest need a level each
    comet.collective gather "c" at "GB" in "A" out "A" src [] dest ["GB"] precision 8
  }
}

// -----

// CHECK: 'comet.problem' op pads M = 4 to 4; padding makes a dimension of the instance larger
comet.problem ins ["A"] outs ["C"] instance <M = 4> padded_from <M = 4> {
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M], C[M]>
}
