// RUN:

func.func private @f() attributes {loop = #schedule.loop<N = 0>}
