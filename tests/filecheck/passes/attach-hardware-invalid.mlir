// RUN: comet-opt %s --split-input-file --verify-diagnostics -p 'attach-hardware{path="%root/samples/hardware/edge.yaml"}' | filecheck %s

// A mesh of the machine's name and shape is kept.

collective.mesh @edge {cx = 2, cy = 2, kx = 2, ky = 2} at {cx = "GB", cy = "GB", kx = "OB", ky = "OB"}

// CHECK:      arch.system @edge
// CHECK:      collective.mesh @edge
// CHECK-NOT:  collective.mesh @edge

// -----

collective.mesh @edge {cx = 2, cy = 2, kx = 4} at {cx = "GB", cy = "GB", kx = "OB"}

// CHECK: the module's mesh @edge is {cx = 2 at GB, cy = 2 at GB, kx = 4 at OB}, but the hardware has {cx = 2 at GB, cy = 2 at GB, kx = 2 at OB, ky = 2 at OB}; remove the mesh or correct it

// -----

arch.system @other {
}

// CHECK: the module already has the hardware @other; attach only one
