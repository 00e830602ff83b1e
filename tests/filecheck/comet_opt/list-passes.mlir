// RUN: comet-opt --list-passes --load-pass-plugin %S/../../../samples/custom_pass/annotate_flops/annotate_flops.py | filecheck %s

// Passes with what they do, and what their options mean; those of xDSL come last.

// CHECK:      annotate-flops: Write on every contraction how many operations it takes
// CHECK-NEXT:     minimum: int (0)
// CHECK-NEXT:         Contractions with fewer operations are left alone.
// CHECK:      bind: Bind every node and collective to its next sibling
// CHECK-NEXT:     kind: sequential|pipeline|parallel|auto (sequential)
// CHECK-NEXT:         One after the other,
// CHECK:          bodies: str | None (none)
// CHECK:          model: tool|paper|ideal (paper)
// CHECK-NEXT:         The cost model for choices that are `auto`, see `annotate-cost`.
// CHECK:      cse
