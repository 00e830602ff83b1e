// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

func.func @leaf() attributes {comet.cost = #cost.estimate<paper, cycles, latency = 898, energy = 15230.5, compulsory_stalls = 18, optional_stalls = 0, memory_window = 880>} {
  func.return
}

// CHECK:      func.func @leaf() attributes {comet.cost = #cost.estimate<paper, cycles, latency = 898, energy = 15230.5, compulsory_stalls = 18, optional_stalls = 0, memory_window = 880>} {
// CHECK-GENERIC: comet.cost = #cost.estimate<paper, cycles, latency = 898, energy = 15230.5

// -----

func.func @program() attributes {comet.cost = #cost.estimate<ideal, ns, latency = 0.1, launch_tax = 8000, synchronization_tax = 2500.25, locality_tax = 1.0e-9>} {
  func.return
}

// CHECK: #cost.estimate<ideal, ns, latency = 0.1, launch_tax = 8000, synchronization_tax = 2500.25, locality_tax = 1.0e-09>

// -----

func.func @artifact() attributes {comet.cost = #cost.estimate<tool, cycles, latency = 17734, roofline = 42035>} {
  func.return
}

// CHECK: #cost.estimate<tool, cycles, latency = 17734, roofline = 42035>
