// RUN: comet-opt %s -p 'select-ranks{ranks=3}' | filecheck %s

// CHECK: collective.mesh @gpus {node = 2, rank = 3} at {node = "HBM", rank = "HBM"}
collective.mesh @gpus {node = 2, rank = 8} at {node = "HBM", rank = "HBM"}

// RUN: comet-opt %s -p 'select-ranks{ranks=1}' | filecheck %s --check-prefix=ALONE
// ALONE: collective.mesh @gpus {node = 2, rank = 1}
// ALONE: func.func @f(%x: tensor<8xf32, #compound.dims<M>>) -> tensor<8xf32
// ALONE-NEXT: compound.map exp %x : tensor
func.func @f(%x: tensor<8xf32, #compound.dims<M>> {collective.shard = {M = ["rank"]}}) -> tensor<8xf32, #compound.dims<M>> {
  %y = compound.map exp %x {collective.shard = {M = ["rank"]}} : tensor<8xf32, #compound.dims<M>> -> tensor<8xf32, #compound.dims<M>>
  func.return %y : tensor<8xf32, #compound.dims<M>>
}
