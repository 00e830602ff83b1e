// RUN:
%x = "test.op"() : () -> (!tl.ptr<>)
