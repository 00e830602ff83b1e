// RUN:

"func.func"() <{sym_name = "main", function_type = () -> (), sym_visibility = "HBM"}> ({
  "func.return"() : () -> ()
}) : () -> ()
