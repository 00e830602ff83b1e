// RUN:

comet.problem ins ["A"] outs ["C"] instance <M = 4> {
  comet.declare "EXP" ins ["A"] out "C" dimensions ["M"] tensors <A[M]>
}
