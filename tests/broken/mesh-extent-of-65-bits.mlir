// RUN:

collective.mesh @edge {x = 18446744073709551616}
