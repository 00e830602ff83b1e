// RUN: COMET_ROUNDTRIP
// RUN: COMET_GENERIC_ROUNDTRIP

!MK = tensor<4x8xf16, #compound.dims<M, K>>
!KN = tensor<8x2xf16, #compound.dims<K, N>>
!MN = tensor<4x2xf32, #compound.dims<M, N>>
!M = tensor<4xf32, #compound.dims<M>>
!one = tensor<f32, #compound.dims<>>
func.func @elementary(%a: !MK, %b: !KN) -> !MN {
  %c = compound.contract %a, %b : !MK, !KN -> !MN
  %m = compound.reduce max %c : !MN -> !M
  %s = compound.map sub %c, %m : !MN, !M -> !MN
  %e = compound.map exp %s {note = "kept"} : !MN -> !MN
  %e2 = compound.map exp2 %s : !MN -> !MN
  %h = compound.cast %e : !MN -> tensor<4x2xf16, #compound.dims<M, N>>
  %r = compound.rename %c : !MN -> tensor<4x2xf32, #compound.dims<N1, P>>
  %q = compound.rename %c split "M" : !MN -> tensor<2x2x2xf32, #compound.dims<P, Q, N>>
  %g = compound.rename %q merge "Q" : tensor<2x2x2xf32, #compound.dims<P, Q, N>> -> tensor<2x4xf32, #compound.dims<P, R>>
  %f = compound.fill -1.250000e-01 : !one
  %n = compound.extent "N" of %c : !MN -> !one
  func.return %s : !MN
}
func.func @fold(%c: !MN) -> !M {
  %low = compound.fill -1.0e+30 : !M
  %m = compound.fold over "N" ins(%c : !MN) init(%low : !M) step {
  ^bb0(%chunk: !MN, %old: !M):
    %now = compound.reduce max %chunk : !MN -> !M
    %new = compound.map max %old, %now : !M, !M -> !M
    compound.yield %new : !M
  } merge {
  ^bb0(%x: !M, %y: !M):
    %new = compound.map max %x, %y : !M, !M -> !M
    compound.yield %new : !M
  } -> !M
  func.return %m : !M
}
func.func @conditions(%c: !MN, %l: tensor<4xi32, #compound.dims<M>>) -> !MN {
  %n = compound.index : tensor<2xi32, #compound.dims<N>>
  %one = compound.fill 1.0 : tensor<i32, #compound.dims<>>
  %last = compound.map sub %l, %one : tensor<4xi32, #compound.dims<M>>, tensor<i32, #compound.dims<>> -> tensor<4xi32, #compound.dims<M>>
  %seen = compound.map ge %last, %n : tensor<4xi32, #compound.dims<M>>, tensor<2xi32, #compound.dims<N>> -> tensor<4x2xi1, #compound.dims<M, N>>
  %low = compound.fill -1.0 : !one
  %infinite = compound.fill -inf : !one
  %nan = compound.fill nan : !one
  %long = compound.fill 2097153.0 : !one
  %high = compound.map gt %c, %low : !MN, !one -> tensor<4x2xi1, #compound.dims<M, N>>
  %same = compound.map eq %seen, %high : tensor<4x2xi1, #compound.dims<M, N>>, tensor<4x2xi1, #compound.dims<M, N>> -> tensor<4x2xi1, #compound.dims<M, N>>
  %r = compound.map select %same, %c, %low : tensor<4x2xi1, #compound.dims<M, N>>, !MN, !one -> !MN
  func.return %r : !MN
}
func.func @named(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %v: tensor<2xf16>) -> tensor<4x2xf16> {
  %p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
  %y = compound.gemm_layernorm %a, %b, %v, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  %z = compound.gemm_layernorm %a, %b, %v, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  func.return %p : tensor<4x2xf16>
}
func.func @float8(%x: tensor<4x2xf8E4M3FN, #compound.dims<M, N>>) -> tensor<4xf8E4M3FN, #compound.dims<M>> {
  %m = compound.reduce max %x : tensor<4x2xf8E4M3FN, #compound.dims<M, N>> -> tensor<4xf8E4M3FN, #compound.dims<M>>
  func.return %m : tensor<4xf8E4M3FN, #compound.dims<M>>
}
func.func @dims(%x: tensor<4x2xf32, #compound.dims<M, N @OB>>) -> tensor<f32, #compound.dims<@OB>> {
  %y = compound.reduce add %x : tensor<4x2xf32, #compound.dims<M, N @OB>> -> tensor<f32, #compound.dims<@OB>>
  func.return %y : tensor<f32, #compound.dims<@OB>>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @elementary(%a: tensor<4x8xf16, #compound.dims<M, K>>, %b: tensor<8x2xf16, #compound.dims<K, N>>) -> tensor<4x2xf32, #compound.dims<M, N>> {
// CHECK-NEXT:     %c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %m = compound.reduce max %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %s = compound.map sub %c, %m : tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %e = compound.map exp %s {note = "kept"} : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %e2 = compound.map exp2 %s : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     %h = compound.cast %e : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf16, #compound.dims<M, N>>
// CHECK-NEXT:     %r = compound.rename %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4x2xf32, #compound.dims<N1, P>>
// CHECK-NEXT:     %q = compound.rename %c split "M" : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<2x2x2xf32, #compound.dims<P, Q, N>>
// CHECK-NEXT:     %g = compound.rename %q merge "Q" : tensor<2x2x2xf32, #compound.dims<P, Q, N>> -> tensor<2x4xf32, #compound.dims<P, R>>
// CHECK-NEXT:     %f = compound.fill -1.250000e-01 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:     %n = compound.extent "N" of %c : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<f32, #compound.dims<>>
// CHECK-NEXT:     func.return %s : tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @fold(%c: tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>> {
// CHECK-NEXT:     %low = compound.fill -1.000000e+30 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     %m = compound.fold over "N" ins(%c : tensor<4x2xf32, #compound.dims<M, N>>) init(%low : tensor<4xf32, #compound.dims<M>>) step {
// CHECK-NEXT:     ^bb0(%chunk: tensor<4x2xf32, #compound.dims<M, N>>, %old: tensor<4xf32, #compound.dims<M>>):
// CHECK-NEXT:       %now = compound.reduce max %chunk : tensor<4x2xf32, #compound.dims<M, N>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       %new = compound.map max %old, %now : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       compound.yield %new : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     } merge {
// CHECK-NEXT:     ^bb0(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>):
// CHECK-NEXT:       %new_1 = compound.map max %x, %y : tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>> -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:       compound.yield %new_1 : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     } -> tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:     func.return %m : tensor<4xf32, #compound.dims<M>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @conditions(%c: tensor<4x2xf32, #compound.dims<M, N>>, %l: tensor<4xi32, #compound.dims<M>>) -> tensor<4x2xf32, #compound.dims<M, N>> {
// CHECK-NEXT:     %n = compound.index : tensor<2xi32, #compound.dims<N>>
// CHECK-NEXT:     %one = compound.fill 1.000000e+00 : tensor<i32, #compound.dims<>>
// CHECK-NEXT:     %last = compound.map sub %l, %one : tensor<4xi32, #compound.dims<M>>, tensor<i32, #compound.dims<>> -> tensor<4xi32, #compound.dims<M>>
// CHECK-NEXT:     %seen = compound.map ge %last, %n : tensor<4xi32, #compound.dims<M>>, tensor<2xi32, #compound.dims<N>> -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-NEXT:     %low = compound.fill -1.000000e+00 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:     %infinite = compound.fill -inf : tensor<f32, #compound.dims<>>
// CHECK-NEXT:     %nan = compound.fill nan : tensor<f32, #compound.dims<>>
// CHECK-NEXT:     %long = compound.fill 2097153.0 : tensor<f32, #compound.dims<>>
// CHECK-NEXT:     %high = compound.map gt %c, %low : tensor<4x2xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>> -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-NEXT:     %same = compound.map eq %seen, %high : tensor<4x2xi1, #compound.dims<M, N>>, tensor<4x2xi1, #compound.dims<M, N>> -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-NEXT:     %r = compound.map select %same, %c, %low : tensor<4x2xi1, #compound.dims<M, N>>, tensor<4x2xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>> -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:     func.return %r : tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @named(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %v: tensor<2xf16>) -> tensor<4x2xf16> {
// CHECK-NEXT:     %p = compound.gemm_softmax %a, %b : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:     %y = compound.gemm_layernorm %a, %b, %v, %v : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:     %z = compound.gemm_layernorm %a, %b, %v, %v epsilon 1.000000e-03 : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-NEXT:     func.return %p : tensor<4x2xf16>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @float8(%x: tensor<4x2xf8E4M3FN, #compound.dims<M, N>>) -> tensor<4xf8E4M3FN, #compound.dims<M>> {
// CHECK-NEXT:     %m = compound.reduce max %x : tensor<4x2xf8E4M3FN, #compound.dims<M, N>> -> tensor<4xf8E4M3FN, #compound.dims<M>>
// CHECK-NEXT:     func.return %m : tensor<4xf8E4M3FN, #compound.dims<M>>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @dims(%x: tensor<4x2xf32, #compound.dims<M, N @OB>>) -> tensor<f32, #compound.dims<@OB>> {
// CHECK-NEXT:     %y = compound.reduce add %x : tensor<4x2xf32, #compound.dims<M, N @OB>> -> tensor<f32, #compound.dims<@OB>>
// CHECK-NEXT:     func.return %y : tensor<f32, #compound.dims<@OB>>
// CHECK-NEXT:   }
// CHECK-NEXT: }

// CHECK-GENERIC:      "builtin.module"() ({
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "elementary", function_type = (tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>>) -> tensor<4x2xf32, #compound.dims<M, N>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%a: tensor<4x8xf16, #compound.dims<M, K>>, %b: tensor<8x2xf16, #compound.dims<K, N>>):
// CHECK-GENERIC-NEXT:     %c = "compound.contract"(%a, %b) : (tensor<4x8xf16, #compound.dims<M, K>>, tensor<8x2xf16, #compound.dims<K, N>>) -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %m = "compound.reduce"(%c) <{kind = #compound<reduce_kind max>}> : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:     %s = "compound.map"(%c, %m) <{kind = #compound<map_kind sub>}> : (tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>>) -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %e = "compound.map"(%s) <{kind = #compound<map_kind exp>}> {note = "kept"} : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %e2 = "compound.map"(%s) <{kind = #compound<map_kind exp2>}> : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %h = "compound.cast"(%e) : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4x2xf16, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %r = "compound.rename"(%c) : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4x2xf32, #compound.dims<N1, P>>
// CHECK-GENERIC-NEXT:     %q = "compound.rename"(%c) <{split = "M"}> : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<2x2x2xf32, #compound.dims<P, Q, N>>
// CHECK-GENERIC-NEXT:     %g = "compound.rename"(%q) <{merge = "Q"}> : (tensor<2x2x2xf32, #compound.dims<P, Q, N>>) -> tensor<2x4xf32, #compound.dims<P, R>>
// CHECK-GENERIC-NEXT:     %f = "compound.fill"() <{value = -1.250000e-01 : f64}> : () -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %n = "compound.extent"(%c) <{dim = "N"}> : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     "func.return"(%s) : (tensor<4x2xf32, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "fold", function_type = (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<4x2xf32, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:     %low = "compound.fill"() <{value = -1.000000e+30 : f64}> : () -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:     %m = "compound.fold"(%c, %low) <{dim = "N", operandSegmentSizes = array<i32: 1, 1>}> ({
// CHECK-GENERIC-NEXT:     ^bb0(%chunk: tensor<4x2xf32, #compound.dims<M, N>>, %old: tensor<4xf32, #compound.dims<M>>):
// CHECK-GENERIC-NEXT:       %now = "compound.reduce"(%chunk) <{kind = #compound<reduce_kind max>}> : (tensor<4x2xf32, #compound.dims<M, N>>) -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       %new = "compound.map"(%old, %now) <{kind = #compound<map_kind max>}> : (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       "compound.yield"(%new) : (tensor<4xf32, #compound.dims<M>>) -> ()
// CHECK-GENERIC-NEXT:     }, {
// CHECK-GENERIC-NEXT:     ^bb0(%x: tensor<4xf32, #compound.dims<M>>, %y: tensor<4xf32, #compound.dims<M>>):
// CHECK-GENERIC-NEXT:       %new_1 = "compound.map"(%x, %y) <{kind = #compound<map_kind max>}> : (tensor<4xf32, #compound.dims<M>>, tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:       "compound.yield"(%new_1) : (tensor<4xf32, #compound.dims<M>>) -> ()
// CHECK-GENERIC-NEXT:     }) : (tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xf32, #compound.dims<M>>) -> tensor<4xf32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:     "func.return"(%m) : (tensor<4xf32, #compound.dims<M>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "conditions", function_type = (tensor<4x2xf32, #compound.dims<M, N>>, tensor<4xi32, #compound.dims<M>>) -> tensor<4x2xf32, #compound.dims<M, N>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%c: tensor<4x2xf32, #compound.dims<M, N>>, %l: tensor<4xi32, #compound.dims<M>>):
// CHECK-GENERIC-NEXT:     %n = "compound.index"() : () -> tensor<2xi32, #compound.dims<N>>
// CHECK-GENERIC-NEXT:     %one = "compound.fill"() <{value = 1.000000e+00 : f64}> : () -> tensor<i32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %last = "compound.map"(%l, %one) <{kind = #compound<map_kind sub>}> : (tensor<4xi32, #compound.dims<M>>, tensor<i32, #compound.dims<>>) -> tensor<4xi32, #compound.dims<M>>
// CHECK-GENERIC-NEXT:     %seen = "compound.map"(%last, %n) <{kind = #compound<map_kind ge>}> : (tensor<4xi32, #compound.dims<M>>, tensor<2xi32, #compound.dims<N>>) -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %low = "compound.fill"() <{value = -1.000000e+00 : f64}> : () -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %infinite = "compound.fill"() <{value = 0xfff0000000000000 : f64}> : () -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %nan = "compound.fill"() <{value = 0x7ff8000000000000 : f64}> : () -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %long = "compound.fill"() <{value = 0x4140000080000000 : f64}> : () -> tensor<f32, #compound.dims<>>
// CHECK-GENERIC-NEXT:     %high = "compound.map"(%c, %low) <{kind = #compound<map_kind gt>}> : (tensor<4x2xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>>) -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %same = "compound.map"(%seen, %high) <{kind = #compound<map_kind eq>}> : (tensor<4x2xi1, #compound.dims<M, N>>, tensor<4x2xi1, #compound.dims<M, N>>) -> tensor<4x2xi1, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     %r = "compound.map"(%same, %c, %low) <{kind = #compound<map_kind select>}> : (tensor<4x2xi1, #compound.dims<M, N>>, tensor<4x2xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>>) -> tensor<4x2xf32, #compound.dims<M, N>>
// CHECK-GENERIC-NEXT:     "func.return"(%r) : (tensor<4x2xf32, #compound.dims<M, N>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "named", function_type = (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %v: tensor<2xf16>):
// CHECK-GENERIC-NEXT:     %p = "compound.gemm_softmax"(%a, %b) : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT:     %y = "compound.gemm_layernorm"(%a, %b, %v, %v) <{epsilon = 1.000000e-05 : f64}> : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT:     %z = "compound.gemm_layernorm"(%a, %b, %v, %v) <{epsilon = 1.000000e-03 : f64}> : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
// CHECK-GENERIC-NEXT:     "func.return"(%p) : (tensor<4x2xf16>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "float8", function_type = (tensor<4x2xf8E4M3FN, #compound.dims<M, N>>) -> tensor<4xf8E4M3FN, #compound.dims<M>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%x: tensor<4x2xf8E4M3FN, #compound.dims<M, N>>):
// CHECK-GENERIC-NEXT:     %m = "compound.reduce"(%x) <{kind = #compound<reduce_kind max>}> : (tensor<4x2xf8E4M3FN, #compound.dims<M, N>>) -> tensor<4xf8E4M3FN, #compound.dims<M>>
// CHECK-GENERIC-NEXT:     "func.return"(%m) : (tensor<4xf8E4M3FN, #compound.dims<M>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT:   "func.func"() <{sym_name = "dims", function_type = (tensor<4x2xf32, #compound.dims<M, N @OB>>) -> tensor<f32, #compound.dims<@OB>>}> ({
// CHECK-GENERIC-NEXT:   ^bb0(%x: tensor<4x2xf32, #compound.dims<M, N @OB>>):
// CHECK-GENERIC-NEXT:     %y = "compound.reduce"(%x) <{kind = #compound<reduce_kind add>}> : (tensor<4x2xf32, #compound.dims<M, N @OB>>) -> tensor<f32, #compound.dims<@OB>>
// CHECK-GENERIC-NEXT:     "func.return"(%y) : (tensor<f32, #compound.dims<@OB>>) -> ()
// CHECK-GENERIC-NEXT:   }) : () -> ()
// CHECK-GENERIC-NEXT: }) : () -> ()
