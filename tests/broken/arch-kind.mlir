// RUN:

arch.system @tiny {
  arch.level @DRAM : "Off" {
  }
}
