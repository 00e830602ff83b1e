// RUN:

"arch.system"() <{label = "tiny"}> ({
  "arch.memory"() <{kind = "Off", fields = {width = @REG}}> : () -> ()
}) : () -> ()
