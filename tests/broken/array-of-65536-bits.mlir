// RUN:

"builtin.module"() ({
}) {x = array<i65536: 2>} : () -> ()
