// RUN:

"builtin.module"() ({
}) {x = 1.0 : f128} : () -> ()
