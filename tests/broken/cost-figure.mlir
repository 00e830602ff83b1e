// RUN:

func.func private @f() attributes {comet.cost = #cost.estimate<paper, cycles, latency = 1, heat = 2>}
