// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: axis x is given twice
collective.mesh @m {x = 2, x = 3}

// -----

// CHECK: `at` gives a level for each axis
collective.mesh @m {x = 2, y = 3} at {x = "GB"}

// -----

// CHECK: 'collective.mesh' op axis names are distinct
"collective.mesh"() <{sym_name = "m", axes = ["x", "x"], extents = array<i64: 2, 2>}> : () -> ()

// -----

// CHECK: 'collective.mesh' op has the axis name 'x-y', which is not an identifier
"collective.mesh"() <{sym_name = "m", axes = ["x-y"], extents = array<i64: 2>}> : () -> ()

// -----

// CHECK: 'collective.mesh' op gives every axis one extent and, with `at`, one level
"collective.mesh"() <{sym_name = "m", axes = ["x"], extents = array<i64: 2, 2>}> : () -> ()

// -----

// CHECK: 'collective.mesh' op gives every axis one extent and, with `at`, one level
"collective.mesh"() <{sym_name = "m", axes = ["x"], extents = array<i64: 2>, levels = ["GB", "OB"]}> : () -> ()

// -----

// CHECK: 'collective.mesh' op axis x has extent 0; it is positive
collective.mesh @m {x = 0}

// -----

%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op there is no mesh @m; declare it with collective.mesh @m {..} or attach hardware that has it
%r = collective.all_reduce add %x on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op no mesh axis is named
%r = collective.all_reduce add %x on @m [] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2, y = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op mesh @m has no axis 'z'; its axes are x, y
%r = collective.all_reduce add %x on @m ["z"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op axis 'x' is named twice
%r = collective.all_reduce add %x on @m ["x", "x"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_reduce' op keeps the type tensor<8xf16, #compound.dims<M>>, got tensor<4xf16, #compound.dims<M>>
%r = collective.all_reduce add %x on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<4xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_gather' op keeps the element type
%r = collective.all_gather "M" %x on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<16xf32, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_gather' op tensor<16xf16, #compound.dims<M>> has no dim N
%r = collective.all_gather "N" %x on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<16xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.all_gather' op M = 20 over 2 instances is 10 each, got 8
%r = collective.all_gather "M" %x on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<20xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8x4xf16, #compound.dims<M, N>>
// CHECK: 'collective.reduce_scatter' op keeps every dimension but M: tensor<4x3xf16, #compound.dims<M, N>> and tensor<8x4xf16, #compound.dims<M, N>>
%r = collective.reduce_scatter add "M" %x on @m ["x"] : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<4x3xf16, #compound.dims<M, N>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.reduce' op root 2 is not one of the group's 2 instances
%r = collective.reduce add %x root 2 on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.broadcast' op root 2 is not one of the group's 2 instances
%r = collective.broadcast %x root 2 on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<8xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.gather' op root -1 is not one of the group's 2 instances
%r = collective.gather "M" %x root -1 on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<16xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.scatter' op M = 8 over 2 instances is 4 each, got 5
%r = collective.scatter "M" %x root 0 on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> tensor<5xf16, #compound.dims<M>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8x4xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_to_all' op splits one dimension of tensor<8x4xf16, #compound.dims<M, N>> and concatenates along another one or a new one
%r = collective.all_to_all split "M" concat "M" %x on @m ["x"] : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<M, N>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8x4xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_to_all' op keeps the element type
%r = collective.all_to_all split "M" concat "N" %x on @m ["x"] : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8x4xf16, #compound.dims<M, N>>
// CHECK: 'collective.all_to_all' op over 2 instances, tensor<8x4xf16, #compound.dims<M, N>> does not become tensor<8x8xf16, #compound.dims<M, N>>
%r = collective.all_to_all split "M" concat "N" %x on @m ["x"] : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>

// -----

collective.mesh @m {x = 2, y = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.send' op shifts along one axis
%t = collective.send %x offset 1 wrap true on @m ["x", "y"] : tensor<8xf16, #compound.dims<M>> -> !collective.token<tensor<8xf16, #compound.dims<M>>>

// -----

collective.mesh @m {x = 2}
%x = "test.op"() : () -> tensor<8xf16, #compound.dims<M>>
// CHECK: 'collective.send' op token carries tensor<4xf16, #compound.dims<M>>, not tensor<8xf16, #compound.dims<M>>
%t = collective.send %x offset 1 wrap true on @m ["x"] : tensor<8xf16, #compound.dims<M>> -> !collective.token<tensor<4xf16, #compound.dims<M>>>

// -----

%t = "test.op"() : () -> !collective.token<tensor<4xf16, #compound.dims<M>>>
// CHECK: 'collective.recv' op token carries tensor<4xf16, #compound.dims<M>>, not tensor<8xf16, #compound.dims<M>>
%r = collective.recv %t : !collective.token<tensor<4xf16, #compound.dims<M>>> -> tensor<8xf16, #compound.dims<M>>

// -----

%t = "test.op"() : () -> !collective.token<tensor<4xf16, #compound.dims<M>>>
// CHECK: 'collective.recv' op a token is received once
%r = collective.recv %t : !collective.token<tensor<4xf16, #compound.dims<M>>> -> tensor<4xf16, #compound.dims<M>>
%s = collective.recv %t : !collective.token<tensor<4xf16, #compound.dims<M>>> -> tensor<4xf16, #compound.dims<M>>
