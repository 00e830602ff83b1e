// RUN:

arch.system @tiny {
  arch.memory "Off" {width = -8}
}
