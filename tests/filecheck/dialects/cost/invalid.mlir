// RUN: comet-opt %s --split-input-file --parsing-diagnostics | filecheck %s

"test.op"() {comet.cost = #cost.estimate<guess, cycles, latency = 1>} : () -> ()

// CHECK: Expected `tool`, `paper`, or `ideal`.

// -----

"test.op"() {comet.cost = #cost.estimate<paper, hours, latency = 1>} : () -> ()

// CHECK: Expected `cycles`, or `ns`.

// -----

"test.op"() {comet.cost = #cost.estimate<paper, cycles, energy = 1>} : () -> ()

// CHECK: an estimate gives at least its latency

// -----

"test.op"() {comet.cost = #cost.estimate<paper, cycles, latency = 1, heat = 2>} : () -> ()

// CHECK: an estimate has no figure 'heat'; it has latency, energy, compulsory_stalls,

// -----

"test.op"() {comet.cost = #cost.estimate<paper, cycles, latency = 1, latency = 2>} : () -> ()

// CHECK: the figure 'latency' is given twice

// -----

"test.op"() {comet.cost = #cost.estimate<paper, cycles, latency = -1>} : () -> ()

// CHECK: an estimate cannot have latency = -1
