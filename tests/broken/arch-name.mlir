// RUN:

"arch.system"() <{label = "tiny"}> ({
  "arch.memory"() <{kind = "Off", fields = {width = 8}}> : () -> ()
  "arch.level"() <{label = "", kind = "Off"}> ({
  }) : () -> ()
}) : () -> ()
