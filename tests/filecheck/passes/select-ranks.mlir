// RUN: comet-opt %s -p 'select-ranks{ranks=3}' | filecheck %s

// CHECK: collective.mesh @gpus {node = 2, rank = 3} at {node = "HBM", rank = "HBM"}
collective.mesh @gpus {node = 2, rank = 8} at {node = "HBM", rank = "HBM"}
