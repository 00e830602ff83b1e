// RUN:

tl.kernel @k() {
  %g = tl.program_id 3
}
