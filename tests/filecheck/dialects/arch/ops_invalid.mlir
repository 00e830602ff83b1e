// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

arch.system @tiny {
  arch.memory "Off" {width = 8, width = 9}
}

// CHECK: field 'width' is given twice

// -----

arch.system @tiny {
  arch.memory "Off" {width = -8}
}

// CHECK: 'arch.memory' op "Off": the field 'width' is a positive integer, not -8

// -----

arch.system @tiny {
  arch.compute "VSIMD" {computeLatency = 1}
}

// CHECK: 'arch.compute' op "VSIMD": the field 'computeOpC' is missing; it is a positive integer

// -----

arch.system @tiny {
  arch.level @DRAM : "Off" {
  }
}

// CHECK: 'arch.level' op @DRAM is of the kind "Off", but the system has no arch.memory of that name

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" {
    arch.unit @SE : "Off" by fills link {bw = 1, connection_type = "MeshNetwork"}
  }
}

// CHECK: 'arch.unit' op @SE is of the kind "Off", but the system has no arch.compute of that name

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" by fills {
  }
}

// CHECK: 'arch.level' op @DRAM is outermost and has no path

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" {
    arch.level @GB : "Off" by fills {
    }
  }
}

// CHECK: 'arch.level' op @GB lies below a level and needs a path and a link

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" {
    arch.level @GB : "Off" by fills link {connection_type = "MeshNetwork"} {
    }
  }
}

// CHECK: 'arch.level' op @GB in its link, the field 'bw' is missing; it is a positive integer

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" link {meshX = 4, meshY = 2} axes ["x"] {
  }
}

// CHECK: 'arch.level' op @DRAM has 8 instances, but its axes span 4; name an axis for each direction of its mesh

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" link {meshX = 4, meshY = 4} axes ["x", "x"] {
  }
}

// CHECK: 'arch.level' op @DRAM has one or two axes, all different

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" link {meshX = 4} axes ["x"] {
    arch.level @GB : "Off" by fills link {bw = 1, connection_type = "MeshNetwork", meshX = 2} axes ["x"] {
    }
  }
}

// CHECK: 'arch.system' op has mesh axis x twice

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" {
    arch.level @DRAM : "Off" by fills link {bw = 1, connection_type = "MeshNetwork"} {
    }
  }
}

// CHECK: 'arch.system' op has level DRAM twice

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @DRAM : "Off" {
  }
  arch.level @Flash : "Off" {
  }
}

// CHECK: 'arch.system' op has 2 outermost levels, DRAM, Flash; write one, which the others are below

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.compute "Unit" {computeOpC = 64, computeLatency = 16}
  arch.level @DRAM : "Off" {
    arch.unit @DRAM : "Unit" by connects link {bw = 1, connection_type = "MeshNetwork"}
  }
}

// CHECK: 'arch.system' op has a level and a unit that are called DRAM; rename one

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.memory "Off" {width = 8}
}

// CHECK: 'arch.system' op has arch.memory Off twice

// -----

arch.system @tiny {
  arch.gpu {clock_ghz = 1.5}
}

// CHECK: 'arch.gpu' op 11 fields are missing: 'multiprocessors', a positive integer, 'tensor_tflops', a positive number for each of some of f64,

// -----

arch.system @tiny {
  arch.gpu {clock_ghz = 1.5, multiprocessors = 4, tensor_tflops = {f12 = 100}, vector_tflops = {f32 = 1.25}, hbm_gb_per_s = 100, l2_bytes = 1048576, l2_gb_per_s = 500, link_gb_per_s = 50, link_latency_us = 1, launch_us = 4, barrier_us = 5, signal_us = 2}
}

// CHECK: 'arch.gpu' op the field 'tensor_tflops' is a positive number for each of some of f64, f32, f16, bf16, f8, i8, not {f12: 100}

// -----

arch.system @tiny {
  arch.gpu {clock_ghz = 1.5, multiprocessors = 4, tensor_tflops = {f16 = 100}, vector_tflops = {f32 = 1.25}, hbm_gb_per_s = 100, l2_bytes = 1048576, l2_gb_per_s = 500, link_gb_per_s = 50, link_latency_us = 1, launch_us = 4, barrier_us = 5, signal_us = 2, fans = 3}
}

// CHECK: 'arch.gpu' op unknown field 'fans', known are clock_ghz,

// -----

arch.memory "Off" {width = 8}

// CHECK: 'arch.memory' expects parent op 'arch.system'

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8, bw = 0}
}

// CHECK: 'arch.memory' op "Off": the field 'bw' is a number of at least 1, not 0

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8, bw = 0x7FF0000000000000 : f64}
}

// CHECK: 'arch.memory' op "Off": the field 'bw' is a number of at least 1, not inf

// -----

arch.system @tiny {
  arch.memory "Off" {widht = 8}
}

// CHECK: 'arch.memory' op "Off": unknown field 'widht', did you mean 'width'?

// -----

arch.system @tiny {
  arch.memory "Off" {width = 8}
  arch.level @Off : "Off" axes ["my-axis"] {
  }
}

// CHECK: 'arch.level' op @Off has the axis name 'my-axis', which is not an identifier; write letters, digits and underscores
