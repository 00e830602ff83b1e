// RUN:

collective.mesh @m {x = 0}
