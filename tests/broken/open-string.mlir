// RUN:
func.func @f() -> () {
  "test.op"() {a = "open} : () -> ()
}
