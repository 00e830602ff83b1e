// RUN:

comet.mapping {
}
