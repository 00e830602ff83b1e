// RUN: comet-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

tl.kernel @k(%x: tensor<16xf32>) {
  // CHECK: 'tl.kernel' op parameter 0 is tensor<16xf32>, expected a pointer, an integer or a constexpr
}

// -----

tl.kernel @k() {
  %g = tl.program_id 3
  // CHECK: 'tl.program_id' op a grid has the axes 0, 1 and 2
}

// -----

tl.kernel @k() {
  %g = tl.num_programs -1
  // CHECK: 'tl.num_programs' op a grid has the axes 0, 1 and 2
}

// -----

tl.kernel @k(%B: !tl.constexpr<24>) {
  %r = tl.arange %B : !tl.constexpr<24> -> tensor<24xi32>
  // CHECK: 'tl.arange' op 24 is not a power of two
}

// -----

tl.kernel @k(%B: !tl.constexpr<16>) {
  %r = tl.arange %B : !tl.constexpr<16> -> tensor<32xi32>
  // CHECK: 'tl.arange' op result is tensor<32xi32>, expected tensor<16xi32>
}

// -----

%x = "test.op"() : () -> tensor<16xf32>
%y = tl.expand_dims %x [2] : tensor<16xf32> -> tensor<16x1xf32>
// CHECK: 'tl.expand_dims' op axis 2 is out of range

// -----

%x = "test.op"() : () -> tensor<16x8xf32>
%y = tl.permute %x [1, 1] : tensor<16x8xf32> -> tensor<8x16xf32>
// CHECK: 'tl.permute' op the order is no permutation

// -----

%x, %B = "test.op"() : () -> (tensor<16x8xf32>, !tl.constexpr<16>)
%y = tl.broadcast_to %x to %B, %B : tensor<16x8xf32>, !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
// CHECK: 'tl.broadcast_to' op blocks 16x8 and 16x16 do not broadcast

// -----

%x, %B = "test.op"() : () -> (tensor<16x8xf32>, !tl.constexpr<1>)
%y = tl.broadcast_to %x to %B, %B : tensor<16x8xf32>, !tl.constexpr<1>, !tl.constexpr<1> -> tensor<16x8xf32>
// CHECK: 'tl.broadcast_to' op the input is larger than (1, 1)

// -----

%B = "test.op"() : () -> !tl.constexpr<16>
%y = tl.full 0.0 : f32 dims %B : !tl.constexpr<16> -> tensor<16xf16>
// CHECK: 'tl.full' op result is tensor<16xf16>, expected tensor<16xf32>

// -----

%x = "test.op"() : () -> tensor<16xi32>
%y = tl.unary exp %x : tensor<16xi32> -> tensor<16xi32>
// CHECK: 'tl.unary' op exp of tensor<16xi32>, expected floats

// -----

%x, %y = "test.op"() : () -> (tensor<16x8xf32>, tensor<16xf32>)
%z = tl.binary add %x, %y : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<16x8xf32>
// CHECK: 'tl.binary' op blocks 16x8 and 16 do not broadcast

// -----

%x, %y = "test.op"() : () -> (tensor<16xf32>, tensor<16xf16>)
%z = tl.binary add %x, %y : (tensor<16xf32>, tensor<16xf16>) -> tensor<16xf32>
// CHECK: 'tl.binary' op element of rhs is f16, expected f32

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.binary and %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: 'tl.binary' op and of f32

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.binary mod %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: 'tl.binary' op mod of f32

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.cmp lt %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: 'tl.cmp' op result is tensor<16xf32>, expected tensor<16xi1>

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.where %x, %x, %x : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: 'tl.where' op element of the mask is f32, expected i1

// -----

%x, %n = "test.op"() : () -> (f32, tensor<16xi32>)
%u = tl.rand %x, %n : (f32, tensor<16xi32>) -> tensor<16xf32>
// CHECK: 'tl.rand' op element of the seed is f32, expected i64

// -----

%s, %n = "test.op"() : () -> (i64, tensor<16xi64>)
%u = tl.rand %s, %n : (i64, tensor<16xi64>) -> tensor<16xf32>
// CHECK: 'tl.rand' op element of the offset is i64, expected i32

// -----

%s, %n = "test.op"() : () -> (i64, tensor<16xi32>)
%u = tl.rand %s, %n : (i64, tensor<16xi32>) -> tensor<16xf16>
// CHECK: 'tl.rand' op result is tensor<16xf16>, expected tensor<16xf32>

// -----

%x, %m, %o = "test.op"() : () -> (tensor<16xf32>, tensor<16xi1>, f16)
%z = tl.where %m, %x, %o : (tensor<16xi1>, tensor<16xf32>, f16) -> tensor<16xf32>
// CHECK: 'tl.where' op element of the other case is f16, expected f32

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.cast %x : tensor<16xf32> -> tensor<8xf16>
// CHECK: 'tl.cast' op result is tensor<8xf16>, expected tensor<16xf16>

// -----

%x = "test.op"() : () -> tensor<16xf32>
%z = tl.cast %x : tensor<16xf32> -> tensor<16x!tl.ptr<f16>>
// CHECK: 'tl.cast' op cannot cast to !tl.ptr<f16>

// -----

%x = "test.op"() : () -> tensor<16x8xf32>
%z = tl.reduce sum %x axis 2 : tensor<16x8xf32> -> tensor<16xf32>
// CHECK: 'tl.reduce' op axis 2 of a block of rank 2

// -----

%x = "test.op"() : () -> tensor<16x8xf32>
%z = tl.dot %x, %x : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: 'tl.dot' op cannot multiply tensor<16x8xf32> and tensor<16x8xf32>

// -----

%x, %y, %a = "test.op"() : () -> (tensor<16x8xf32>, tensor<8x16xf32>, tensor<16xf32>)
%z = tl.dot %x, %y acc %a : tensor<16xf32> : tensor<16x8xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
// CHECK: 'tl.dot' op accumulator is tensor<16xf32>, expected tensor<16x16xf32>

// -----

%x = "test.op"() : () -> tensor<16xf32>
%p = tl.addptr %x, %x : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: 'tl.addptr' op address is tensor<16xf32>, expected !tl.ptr

// -----

%p, %x = "test.op"() : () -> (!tl.ptr<f32>, tensor<16xf32>)
%q = tl.addptr %p, %x : (!tl.ptr<f32>, tensor<16xf32>) -> tensor<16x!tl.ptr<f32>>
// CHECK: 'tl.addptr' op offset is tensor<16xf32>

// -----

%p = "test.op"() : () -> tensor<16x!tl.ptr<f32>>
%x = tl.load %p : tensor<16x!tl.ptr<f32>> -> tensor<16xf16>
// CHECK: 'tl.load' op result is tensor<16xf16>, expected tensor<16xf32>

// -----

%p, %m = "test.op"() : () -> (tensor<16x!tl.ptr<f32>>, tensor<16x16xi1>)
%x = tl.load %p mask %m : tensor<16x16xi1> : tensor<16x!tl.ptr<f32>> -> tensor<16xf32>
// CHECK: 'tl.load' op mask tensor<16x16xi1> is larger than (16,)

// -----

%p, %o = "test.op"() : () -> (tensor<16x!tl.ptr<f32>>, f32)
%x = tl.load %p other %o : f32 : tensor<16x!tl.ptr<f32>> -> tensor<16xf32>
// CHECK: 'tl.load' op has `other` but no mask

// -----

%p, %x = "test.op"() : () -> (tensor<16x!tl.ptr<f32>>, tensor<16xf16>)
tl.store %p, %x : tensor<16x!tl.ptr<f32>>, tensor<16xf16>
// CHECK: 'tl.store' op value is tensor<16xf16>, expected tensor<16xf32>

// -----

%p, %x = "test.op"() : () -> (tensor<16x!tl.ptr<f32>>, tensor<16xf16>)
tl.atomic_add %p, %x : tensor<16x!tl.ptr<f32>>, tensor<16xf16>
// CHECK: 'tl.atomic_add' op value is tensor<16xf16>, expected tensor<16xf32>

// -----

%p = "test.op"() : () -> !tl.ptr<tensor<4xf32>>
// CHECK: !tl.ptr points to floats or integers, not to tensor<4xf32>

// -----

%z, %B, %x = "test.op"() : () -> (i32, !tl.constexpr<4>, tensor<16xf32>)
%r = tl.for %k : i32 = %z : i32 to %B : !tl.constexpr<4> step %B : !tl.constexpr<4> iter_args(%a = %x) -> (tensor<16xf32>) {
  tl.yield %k : i32
}
// CHECK: 'tl.for' op iter_arg is i32, expected tensor<16xf32>

// -----

%z, %B, %x = "test.op"() : () -> (i32, !tl.constexpr<4>, tensor<16xf32>)
tl.for %k : i32 = %z : i32 to %B : !tl.constexpr<4> step %B : !tl.constexpr<4> {
  tl.yield %k : i32
}
// CHECK: 'tl.for' op has 0 first values but 0 iter_args and yields 1

// -----

%z, %B = "test.op"() : () -> (i32, !tl.constexpr<4>)
tl.for num_stages 0 %k : i32 = %z : i32 to %B : !tl.constexpr<4> step %B : !tl.constexpr<4> {
}
// CHECK: 'tl.for' op has num_stages 0; a software pipeline has one stage or more

// -----

func.func @host(%a: tensor<4xf32>) {
  tl.launch @nowhere grid [1] on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op @nowhere is not a tl.kernel
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>, %B: !tl.constexpr<4>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [1] on %a, %a : tensor<4xf32>, tensor<4xf32>
  // CHECK: 'tl.launch' op passes 2 arguments to @k, which takes 1
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf16>) {
  tl.launch @k grid [1] on %a : tensor<4xf16>
  // CHECK: 'tl.launch' op argument element is f16, expected f32
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [4, 0] on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op a grid has one to three positive extents, not [4, 0]
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [4] warps 3 on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op 3 warps: not a power of two
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [4] registers 0 on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op needs at least one register
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [4] cluster 3 on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op a cluster of 3 blocks: not a power of two
  func.return
}

// -----

tl.kernel @k(%x: !tl.ptr<f32>) {}
func.func @host(%a: tensor<4xf32>) {
  tl.launch @k grid [4] stages 0 on %a : tensor<4xf32>
  // CHECK: 'tl.launch' op needs at least one stage
  func.return
}

// -----

%i = "test.op"() : () -> i32
%a, %b = tl.swizzle2d %i, %i shape [4] group 2
// CHECK: 'tl.swizzle2d' op needs two positive extents and a positive group

// -----

%a = "test.op"() : () -> tensor<16xf16>
%p = tl.heap_zeros of %a : tensor<2x8xf16>, tensor<16xf16>
// CHECK: 'tl.heap_zeros' op no slot of tensor<2x8xf16> is a tensor<16xf16>

// -----

%a = "test.op"() : () -> tensor<16xf16>
%p = tl.heap_zeros of %a : tensor<2x16xf16>, tensor<16xf16>
"test.op"(%a) : (tensor<16xf16>) -> ()
// CHECK: 'tl.heap_zeros' op of an argument that others use, and nobody passes

// -----

func.func @host(%a: tensor<16xf32>) {
  // CHECK: 'tl.dealloc' op deallocates a tensor that no tl.empty allocates; deallocate buffers only
  tl.dealloc %a : tensor<16xf32>
  func.return
}

// -----

func.func @host() {
  %c = tl.empty : tensor<16xf32>
  // CHECK: 'tl.dealloc' op comes before tl.clear, which uses the buffer; deallocate it after its last use
  tl.dealloc %c : tensor<16xf32>
  tl.clear %c : tensor<16xf32>
  func.return
}

// -----

func.func @host() {
  %c = tl.empty : tensor<16xf32>
  // CHECK: 'tl.view' op tensor<16xf32> and tensor<4x5xf32> are not the same elements; give both as many elements of one type
  %d = tl.view %c : tensor<16xf32> -> tensor<4x5xf32>
  func.return
}
