"""The three taxes of launch plans: they add up, and follow what causes them."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import pytest
from covering import exhaustive
from hardware import H200, with_figures
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_works import computing, looping, moving, needing

from comet.cost.estimate import CostError
from comet.cost.gpu import timeline
from comet.cost.gpu.bounds import plan_bound
from comet.cost.gpu.interconnect import Interconnect, remote_traffic, send_time
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.launch_plan import (
    Barrier,
    Launch,
    LaunchNode,
    LibraryCollective,
    Machine,
    Plan,
    Receive,
    Send,
)
from comet.cost.gpu.taxes import Taxes, price_plan, taxes_by_step, taxes_of
from comet.cost.gpu.timeline import (
    NodeTime,
    Segment,
    Timeline,
    node_time,
    node_times,
    play,
)
from comet.cost.gpu.work import KernelWork, Loops, MovedBytes, Operations
from comet.recent import Recent

GPU = with_figures(
    H200,
    clock=2.1e9,
    multiprocessors=304,
    tensor={"f16": 1307.4e12},
    vector={"f32": 163.4e12},
    hbm_bandwidth=5.3e12,
    l2_bytes=33554432,
    l2_bandwidth=34.4e12,
    launch=6e-6,
    flag_latency=0.7e-6,
)
NET = Interconnect(
    ranks=8,
    bandwidth=448e9,
    links=7,
    latency=1.5e-6,
    load_latency=0.9e-6,
    signal=3e-6,
    barrier=10e-6,
    caches=8,
    flag_bytes=64,
)
NODE = Machine(GPU, NET, 6e-6, skew=0.03)
MESSAGE = 2.0**18
WORK = KernelWork(
    224,
    Operations(tensor=4e6),
    MovedBytes(l2=1e6, shared=2e6, device=60e6),
    Loops(rounds=128, stages=4),
)
COPY = KernelWork(
    16, moved=MovedBytes(l2=32768, device=9 * MESSAGE), loops=Loops(rounds=1)
)


@pytest.mark.parametrize(
    ("launch", "machine"),
    [
        (Launch("gemm", (LaunchNode("gemm", replace(WORK, programs=448)),)), NODE),
        (Launch("gemm", (LaunchNode("gemm", WORK, intermediates=4e7),)), NODE),
        (Launch("gemm", (LaunchNode("gemm", WORK),)), replace(NODE, device=H200)),
    ],
    ids=["work", "intermediates", "GPU"],
)
def test_only_equal_kernels_are_timed_once(
    launch: Launch, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of times holds for all plans."""
    empty = Recent[Hashable, Sequence[NodeTime]](timeline.MOST_TIMED)
    monkeypatch.setattr(timeline, "_TIMES", empty)
    timed = list[Launch]()

    def noting(step: Launch, gpus: Machine) -> list[NodeTime]:
        timed.append(step)
        return node_times(step, gpus)

    monkeypatch.setattr(timeline, "node_times", noting)
    first = Launch("gemm", (LaunchNode("gemm", WORK),))
    plan: Plan = (first, Barrier(), first)
    price_plan(plan, NODE)
    assert timed == [first]
    found = price_plan((launch,), machine)
    assert timed == [first, launch]
    assert found != price_plan((first,), NODE)


def segments_of(timeline: Timeline, rank: int) -> list[Segment]:
    """Return the segments of one rank, in order."""
    return [segment for segment in timeline.segments if segment.rank == rank]


def consumer(remote: bool, waits: bool) -> Launch:
    """Return a kernel that multiplies what all ranks sent."""
    receive = Receive("x", MESSAGE, remote, waits, True, again=28, by_block=True)
    kept = 0 if remote else 8 * MESSAGE
    return Launch("gemm", (LaunchNode("gemm", WORK, kept, receives=(receive,)),))


def producer(remote: bool, signals: bool) -> LaunchNode:
    """Return the node that gives the own shard to all."""
    send = Send("x", MESSAGE, remote, signals, blocks=4)
    return LaunchNode("copy", COPY, 9 * MESSAGE, copies=True, sends=(send,))


BSP: Plan = (
    Barrier(),
    LibraryCollective("gather", "all_gather", 8 * MESSAGE, 16 * MESSAGE),
    Barrier("second"),
    Launch("gemm", (LaunchNode("gemm", WORK, 8 * MESSAGE),)),
)
STORED: Plan = (
    Launch("copy", (producer(True, signals=False),)),
    Barrier(),
    consumer(remote=False, waits=False),
)
PUSH: Plan = (
    Launch("copy", (producer(True, signals=True),)),
    consumer(remote=False, waits=True),
)
PULL: Plan = (
    Launch("copy", (producer(False, signals=True),)),
    consumer(remote=True, waits=True),
)
IN_PLACE: Plan = (consumer(remote=True, waits=False),)
FUSED: Plan = (
    Launch(
        "fused",
        (producer(True, signals=True), *consumer(remote=False, waits=True).nodes),
    ),
)
PLANS = [BSP, STORED, PUSH, PULL, IN_PLACE, FUSED]


def with_net(machine: Machine, **changes: float) -> Machine:
    return replace(machine, net=replace(machine.net, **changes))


times = st.floats(0, 1e-4)


def make_machine(
    ranks: int, bandwidth: float, latency: float, signal: float, launch: float
) -> Machine:
    load = GPU.times.load_latency + latency
    net = Interconnect(ranks, bandwidth, 7, latency, load, signal, 2 * signal, 8, 64)
    return Machine(GPU, net, launch, skew=launch * 1e3)


machines = st.builds(
    make_machine,
    st.sampled_from([1, 2, 4, 8]),
    st.floats(1e9, 1e13),
    *(times, times, times),
)


@settings(deadline=None)
@given(machines, st.sampled_from(PLANS))
def test_busy_and_taxes_are_the_latency(machine: Machine, plan: Plan) -> None:
    timeline = play(plan, machine)
    taxes = taxes_of(timeline.segments, timeline.ranks)
    assert taxes.total == pytest.approx(timeline.latency, rel=1e-9)
    assert min(taxes.launch, taxes.synchronization, taxes.locality, taxes.busy) >= 0
    steps = taxes_by_step(timeline).values()
    assert sum(step.total for step in steps) == pytest.approx(taxes.total, rel=1e-9)


@settings(deadline=None)
@given(machines, st.sampled_from(PLANS))
def test_every_rank_is_always_doing_one_thing(machine: Machine, plan: Plan) -> None:
    timeline = play(plan, machine)
    for rank in range(timeline.ranks):
        now = 0.0
        for segment in segments_of(timeline, rank):
            assert segment.start == pytest.approx(now, rel=1e-9, abs=1e-15)
            assert segment.seconds > 0
            now = segment.start + segment.seconds
        assert now == pytest.approx(timeline.latency, rel=1e-9)


@exhaustive
@settings(deadline=None)
@given(machines, st.sampled_from(PLANS), st.floats(1, 100))
def test_a_better_link_is_never_slower(
    machine: Machine, plan: Plan, better: float
) -> None:
    before = price_plan(plan, machine).total
    net = machine.net
    for name, value in (
        ("bandwidth", net.bandwidth * better),
        ("latency", net.latency / better),
        ("load_latency", net.load_latency / better),
        ("signal", net.signal / better),
        ("barrier", net.barrier / better),
    ):
        after = price_plan(plan, with_net(machine, **{name: value})).total
        assert after <= before * (1 + 1e-9), name


@pytest.mark.parametrize("plan", PLANS)
def test_launch_tax_is_launches_times_their_cost(plan: Plan) -> None:
    launches = sum(not isinstance(step, Barrier) for step in plan)
    assert price_plan(plan, NODE).launch == pytest.approx(launches * 6e-6)
    assert price_plan(plan, replace(NODE, launch=0.0)).launch == 0


@pytest.mark.parametrize("plan", PLANS)
def test_without_skew_nobody_is_slower_than_another(plan: Plan) -> None:
    even = price_plan(plan, replace(NODE, skew=0.0))
    assert even.total < price_plan(plan, NODE).total
    ends = {
        max(s.start + s.seconds for s in segments_of(play(plan, NODE), rank))
        for rank in range(8)
    }
    assert max(ends) == pytest.approx(min(ends))


def test_a_barrier_waits_for_the_slowest_each_time() -> None:
    kernel = Launch("a", (LaunchNode("a", WORK),))
    slowest = 1.03 * node_time(kernel.nodes[0], NODE).seconds
    apart = price_plan((kernel, kernel), NODE)
    behind = price_plan((kernel, Barrier(), kernel), NODE)
    assert behind.total == pytest.approx(2 * (6e-6 + slowest) + 10e-6)
    assert apart.total < behind.total - 10e-6


def test_what_is_written_between_kernels_is_locality() -> None:
    bound = moving(WORK, device=5.3e8)
    whole = price_plan((Launch("a", (LaunchNode("a", bound),)),), NODE)
    half = price_plan((Launch("a", (LaunchNode("a", bound, 2.65e8),)),), NODE)
    assert whole.locality == 0
    assert half.locality == pytest.approx(1.015 * 50e-6, rel=1e-2)
    assert half.total == pytest.approx(whole.total)


def test_bytes_that_pass_while_it_computes_are_free() -> None:
    busy = computing(WORK, tensor=1e10)
    spilled = price_plan((Launch("a", (LaunchNode("a", busy, 60e6),)),), NODE)
    # Those of the first of 128 iterations pass before.
    assert 0 <= spilled.locality <= 60e6 / 5.3e12 / 128


def test_pulled_bytes_cross_a_link_once_for_every_cache() -> None:
    assert remote_traffic(MESSAGE, 28, 1, NET) == 7 * 8 * MESSAGE
    assert remote_traffic(MESSAGE, 28, 3, NET) == 7 * 24 * MESSAGE
    assert remote_traffic(MESSAGE, 28, 9, NET) == 7 * 28 * MESSAGE
    alone = replace(NET, caches=304)
    assert remote_traffic(MESSAGE, 28, 1, alone) == 7 * 28 * MESSAGE


def test_one_peer_has_one_link() -> None:
    assert NET.rate(1) == 64e9
    assert NET.rate(7) == 448e9
    assert replace(NET, links=1).rate(1) == 448e9
    assert send_time(MESSAGE, NET) == pytest.approx(MESSAGE / 64e9)
    four = replace(NET, ranks=4)
    assert send_time(MESSAGE, four) == pytest.approx(MESSAGE / 64e9)


def test_remote_loads_stand_in_the_loop() -> None:
    receive = Receive("x", 0.0, remote=True, waits=False, by_source=True)
    node = LaunchNode("gemm", WORK, receives=(receive,))
    near = node_time(replace(node, receives=(replace(receive, remote=False),)), NODE)
    away = node_time(node, NODE)
    # 16 rounds from each source, three in flight, fill the pipeline eight times.
    filled = 1 + 15 / 3
    control = 128 * 0.05e-6
    first = 60e6 / 5.3e12 / 128
    loaded = first + 127 * first / 3
    assert near.seconds == pytest.approx(8 * filled * 0.6e-6 + control + loaded)
    assert away.seconds - near.seconds == pytest.approx(7 * filled * 0.3e-6)
    assert away.communication == pytest.approx(away.seconds - near.seconds)


@pytest.mark.parametrize("remote", [False, True])
def test_a_program_that_visits_one_source_fills_its_pipeline_once(remote: bool) -> None:
    """The loop over ranks is on the grid; loads of peers take longer."""
    receive = Receive("x", 0.0, remote, waits=False, by_source=True, in_turn=False)
    alone = node_time(LaunchNode("gemm", WORK), NODE)
    found = node_time(LaunchNode("gemm", WORK, receives=(receive,)), NODE)
    filled = 1 + 127 / 3
    assert found.seconds - alone.seconds == pytest.approx(remote * filled * 0.3e-6)


@pytest.mark.parametrize("stages", [1, 4])
@pytest.mark.parametrize("exposed", [0, 64, 128])
def test_the_bound_holds_for_loops_that_visit_the_sources(
    exposed: int, stages: int
) -> None:
    receive = Receive("x", MESSAGE, remote=False, waits=False, by_source=True)
    work = looping(WORK, exposed=exposed, stages=stages)
    launch = Launch("gemm", (LaunchNode("gemm", work, receives=(receive,)),))
    least = plan_bound((launch,), replace(NODE, skew=0.0))
    price = price_plan((launch,), replace(NODE, skew=0.0)).total
    assert 0 < least <= price * (1 + 1e-9)


def test_what_arrives_late_is_waited_for() -> None:
    slow = with_net(NODE, bandwidth=7e9)
    arrives = 6e-6 + MESSAGE / 1e9 + NET.latency + NET.signal
    whole = price_plan(PUSH, slow)
    assert whole.total > arrives
    assert whole.synchronization > 0.99 * MESSAGE / 1e9


def test_a_persistent_kernel_works_while_it_sends() -> None:
    slow = with_net(NODE, bandwidth=70e9)
    separate, together = (price_plan(plan, slow) for plan in (PUSH, FUSED))
    assert together.total < separate.total - 6e-6
    by_wave = needing(replace(WORK, programs=16 * 304), registers=200 * 1024)
    receive = Receive("x", MESSAGE, False, True, True, by_block=True)
    blocks = producer(True, signals=True)

    def waits(receive: Receive) -> float:
        nodes = (blocks, LaunchNode("gemm", by_wave, receives=(receive,)))
        return price_plan((Launch("f", nodes),), with_net(NODE, bandwidth=7e9)).total

    assert waits(receive) < waits(replace(receive, by_block=False))


@pytest.mark.parametrize("count", [2, 3])
def test_nodes_of_a_kernel_share_the_links(count: int) -> None:
    slow = with_net(NODE, bandwidth=7e9)
    first = producer(True, signals=True)
    nodes = [
        replace(
            first, name=f"copy {i}", sends=(replace(first.sends[0], channel=str(i)),)
        )
        for i in range(count)
    ]
    whole = play((Launch("f", tuple(nodes)),), slow).latency
    assert whole > count * float(send_time(MESSAGE, slow.net))


def test_rows_that_have_arrived_hold_nobody_up() -> None:
    sender = producer(True, signals=True)
    blocks = replace(sender, sends=(replace(sender.sends[0], blocks=8),))
    busy = computing(replace(WORK, programs=304), tensor=1e9)
    by_rows = Receive("x", MESSAGE, False, True, True, by_block=True)
    slow = with_net(NODE, bandwidth=8e9)

    def waits(receive: Receive) -> float:
        nodes = (blocks, LaunchNode("gemm", busy, receives=(receive,)))
        return price_plan((Launch("f", nodes),), slow).synchronization

    linked = float(send_time(MESSAGE, slow.net))
    works = node_time(LaunchNode("gemm", busy), slow).seconds
    assert waits(replace(by_rows, by_block=False)) - waits(by_rows) == pytest.approx(
        min(linked, works) * 7 / 8, rel=0.2
    )


def test_the_own_share_needs_no_link() -> None:
    send = Send("x", MESSAGE, remote=True, signals=True)
    node = LaunchNode("copy", COPY, 9 * MESSAGE, copies=True, sends=(send,))
    reader = Receive("x", MESSAGE, False, True, by_source=True)
    gemm = LaunchNode("gemm", looping(WORK, rounds=0), receives=(reader,))
    slow = with_net(replace(NODE, skew=0.0), bandwidth=7e9)
    timeline = play((Launch("f", (node, gemm)),), slow)
    first = next(s for s in segments_of(timeline, 0) if s.node == "gemm")
    assert first.kind == "signal"
    waits = [s for s in segments_of(timeline, 0) if s.kind == "wait"]
    assert len(waits) == 1
    assert waits[0].start > first.start


def test_flags_cost_the_sender_and_the_receiver() -> None:
    free = with_net(NODE, signal=0.0, latency=0.0)
    silent = (*STORED[:1], consumer(remote=False, waits=False))
    looks = 8 * GPU.times.flag_latency
    signalled_inputs = 7 * GPU.times.iteration
    difference = price_plan(PUSH, free).total - price_plan(silent, free).total
    assert looks * 0.999 < difference < looks + signalled_inputs


def test_values_that_one_signal_tells_of_are_looked_at_once() -> None:
    def plan(*channels: str) -> Plan:
        sends = (Send("x", MESSAGE, True, True), Send("y", MESSAGE, True, True))
        copy = LaunchNode("copy", COPY, 9 * MESSAGE, copies=True, sends=sends)
        receives = (Receive(each, MESSAGE, False, True, True) for each in channels)
        gemm = LaunchNode("gemm", WORK, 16 * MESSAGE, receives=tuple(receives))
        return Launch("copy", (copy,)), Launch("gemm", (gemm,))

    free = with_net(replace(NODE, skew=0.0), signal=0.0, latency=0.0)
    apart, together = (price_plan(plan("x", other), free) for other in "yx")
    looks = 8 * GPU.times.flag_latency
    assert apart.synchronization - together.synchronization == pytest.approx(looks)


def test_the_number_of_the_launch_is_read_first() -> None:
    node = LaunchNode(
        "a", needing(replace(WORK, programs=4 * 304), registers=200 * 1024)
    )
    without, counting = (
        price_plan((Launch("a", (replace(node, counts=counts),)),), NODE)
        for counts in (False, True)
    )
    looks = 4 * GPU.times.flag_latency
    assert counting.synchronization - without.synchronization == pytest.approx(looks)


def test_a_collective_starts_when_all_are_there() -> None:
    steps = taxes_by_step(play(BSP, NODE))
    gather = steps["gather"]
    moved = 16 * MESSAGE / GPU.memory.hbm_bandwidth
    direct = NET.latency + 7 * MESSAGE / NET.bandwidth
    assert gather.locality == pytest.approx(moved)
    assert gather.synchronization == pytest.approx(direct - moved)
    assert steps["second"].synchronization == pytest.approx(10e-6)


def test_a_collective_may_be_asked_for_an_algorithm() -> None:
    gather = LibraryCollective("gather", "all_gather", 8 * MESSAGE)
    ring = replace(gather, algorithm="ring")
    fastest, asked = (price_plan((step,), NODE).total for step in (gather, ring))
    assert asked - fastest == pytest.approx(6 * NET.latency)


def test_one_rank_sends_nothing() -> None:
    alone = with_net(NODE, ranks=1)
    whole = price_plan((consumer(remote=True, waits=False),), alone)
    assert whole.synchronization == 0
    kernel = kernel_time(WORK, GPU)
    assert whole.total == pytest.approx(float(kernel.seconds))


def test_an_empty_plan_takes_no_time() -> None:
    assert price_plan((), NODE) == Taxes()


def test_a_program_has_to_fit() -> None:
    large = LaunchNode("large", needing(WORK, shared=1e6))
    with pytest.raises(CostError, match="a program of large does not fit"):
        price_plan((Launch("large", (large,)),), NODE)


def test_somebody_has_to_send_what_is_waited_for() -> None:
    with pytest.raises(CostError, match="gemm waits for channel x, to which no"):
        price_plan((consumer(remote=True, waits=True),), NODE)
