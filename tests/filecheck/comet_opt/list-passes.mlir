// RUN: comet-opt --list-passes --load-pass-plugin %S/../../../samples/custom_pass/annotate_flops/annotate_flops.py | filecheck %s

// Passes with what they do and their options; those of xDSL come last.

// CHECK:      annotate-flops: Write on every contraction how many operations it takes
// CHECK-NEXT:     minimum: int (0)
// CHECK:      bind: Bind every node and collective to its next sibling
// CHECK-NEXT:     kind: sequential|pipeline|parallel|auto (sequential)
// CHECK-NEXT:     bodies: str | None (none)
// CHECK-NEXT:     model: tool|paper|ideal (paper)
// CHECK:      cse
