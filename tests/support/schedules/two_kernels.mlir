// scopes: strip M N; tile M N K; line M
// A product of transposed operands, and a second kernel of every elementwise function.

func.func @functions(%a: $whole(KM, f16, HBM), %b: $whole(NK, f16, HBM), %scale: $whole(M, f16, HBM)) -> $whole(NM, f16, HBM) {
  %c = schedule.spatial on grid [g0: M = $count(M), g1: N = $count(N)] ins(%a, %b : $whole(KM, f16, HBM), $whole(NK, f16, HBM)) outs($whole(NM, f32, HBM)) {
  ^bb0(%a1: $strip(KM, f16, HBM), %b1: $strip(NK, f16, HBM)):
    %c1 = schedule.temporal [K = $count(K)] ins(%a1, %b1 : $strip(KM, f16, HBM), $strip(NK, f16, HBM)) outs($strip(NM)) combine ["add"] {
    ^bb1(%a2: $tile(KM, f16, SMEM), %b2: $tile(NK, f16, SMEM)):
      %c2 = compound.contract %a2, %b2 : $tile(KM, f16, SMEM), $tile(NK, f16, SMEM) -> $tile(NM)
      schedule.yield %c2 : $tile(NM)
    }
    schedule.yield %c1 : $strip(NM)
  }
  %y = schedule.spatial on grid [g0: M = $count(M)] ins(%c, %scale : $whole(NM, f32, HBM), $whole(M, f16, HBM)) outs($whole(NM, f16, HBM)) {
  ^bb0(%c1: $line(NM), %scale1: $line(M, f16)):
    %one = compound.fill 1.0 : $line()
    %negative = compound.map neg %scale1 : $line(M, f16) -> $line(M, f16)
    %wide = compound.cast %negative : $line(M, f16) -> $line(M)
    %t = compound.map tanh %c1 : $line(NM) -> $line(NM)
    %e = compound.map erf %c1 : $line(NM) -> $line(NM)
    %least = compound.map min %t, %e : $line(NM), $line(NM) -> $line(NM)
    %square = compound.map mult %c1, %c1 : $line(NM), $line(NM) -> $line(NM)
    %more = compound.map add %square, %one : $line(NM), $line() -> $line(NM)
    %root = compound.map rsqrt %more : $line(NM) -> $line(NM)
    %half = compound.map sqrt %one : $line() -> $line()
    %log = compound.map log %more : $line(NM) -> $line(NM)
    %sum = compound.map add %root, %log : $line(NM), $line(NM) -> $line(NM)
    %both = compound.map mult %sum, %least : $line(NM), $line(NM) -> $line(NM)
    %scaled = compound.map mult %both, %wide : $line(NM), $line(M) -> $line(NM)
    %same = compound.map div %scaled, %half : $line(NM), $line() -> $line(NM)
    %y1 = compound.cast %same : $line(NM) -> $line(NM, f16)
    schedule.yield %y1 : $line(NM, f16)
  }
  func.return %y : $whole(NM, f16, HBM)
}

func.func private @functions__reference(%a: $ref(KM, f16), %b: $ref(NK, f16), %scale: $ref(M, f16)) -> $ref(NM, f16) attributes {comet.reference} {
  %c = compound.contract %a, %b : $ref(KM, f16), $ref(NK, f16) -> $ref(NM)
  %one = compound.fill 1.0 : $ref()
  %negative = compound.map neg %scale : $ref(M, f16) -> $ref(M, f16)
  %wide = compound.cast %negative : $ref(M, f16) -> $ref(M)
  %t = compound.map tanh %c : $ref(NM) -> $ref(NM)
  %e = compound.map erf %c : $ref(NM) -> $ref(NM)
  %least = compound.map min %t, %e : $ref(NM), $ref(NM) -> $ref(NM)
  %square = compound.map mult %c, %c : $ref(NM), $ref(NM) -> $ref(NM)
  %more = compound.map add %square, %one : $ref(NM), $ref() -> $ref(NM)
  %root = compound.map rsqrt %more : $ref(NM) -> $ref(NM)
  %log = compound.map log %more : $ref(NM) -> $ref(NM)
  %sum = compound.map add %root, %log : $ref(NM), $ref(NM) -> $ref(NM)
  %both = compound.map mult %sum, %least : $ref(NM), $ref(NM) -> $ref(NM)
  %scaled = compound.map mult %both, %wide : $ref(NM), $ref(M) -> $ref(NM)
  %y = compound.cast %scaled : $ref(NM) -> $ref(NM, f16)
  func.return %y : $ref(NM, f16)
}
