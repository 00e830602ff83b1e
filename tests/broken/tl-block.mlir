// RUN:

tl.kernel @k(%B: !tl.constexpr<24>) {
  %r = tl.arange %B : !tl.constexpr<24> -> tensor<24xi32>
}
