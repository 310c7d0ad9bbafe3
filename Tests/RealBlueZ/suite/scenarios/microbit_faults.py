"""Micro:bits that go out of range, fall silent or refuse connections: the gateway connects to them again."""

import time

from journal import expect
from scenarios.common import (
    ANSWER,
    BY_PREFIX,
    CONNECT,
    RETURN,
    expect_cadence,
    expect_return,
    scenario,
    start_one,
)


@scenario()
def vanishes_and_returns(world):
    device = start_one(world)
    for absence in (2, 90):
        mark = world.broker.messages.mark()
        world.microbits.ask("vanish")
        device.wait_availability("offline", RETURN, after=mark)
        time.sleep(absence)  # out of range for that long
        back = world.broker.messages.mark()
        expect(
            not any(m.payload == "online" for m in world.broker.on(device.topic("availability"), mark)),
            "online while away",
        )
        world.microbits.ask("return")
        expect_return(device, back)


@scenario()
def unstable_links_are_tried_again(world):
    """The links fail as soon as they are made, as at the edge of the range."""
    world.start()
    world.microbits.ask("unstable", on=True)
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    world.microbits.until(0, 3 * RETURN, links=3)
    mark = world.broker.messages.mark()
    world.microbits.ask("unstable", on=False)
    expect_return(device, mark)


@scenario()
def others_go_on_while_one_is_away(world):
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    away, *others = world.devices()
    for device in (away, *others):
        device.wait_availability("online", 3 * CONNECT)
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish", away.index)
    away.wait_availability("offline", RETURN, after=mark)
    for device in others:
        device.wait_readings(60, 2 * 60)
        expect(not world.broker.on(device.topic("availability"), mark), f"{device.id} went away too")
    mark = world.broker.messages.mark()
    world.microbits.ask("return", away.index)
    expect_return(away, mark)


@scenario()
def period_is_applied_again_after_reset(world):
    device = start_one(world)
    device.set_period("500")
    device.wait_result("applied", ANSWER)
    mark = world.broker.messages.mark()
    state = world.microbits.ask("reset")
    expect(state["period"] == 1000, f"the reset micro:bit forgot nothing: {state}")
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(device, mark)
    world.microbits.until(0, RETURN, period=500)
    expect_cadence(device, 0.5)


@scenario()
def configured_period_is_applied(world):
    device = start_one(world, period=3000)
    world.microbits.until(0, ANSWER, period=3000)
    device.wait_period(3000, ANSWER)


@scenario()
def microbit_hangs_up(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("disconnect")
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(device, mark)


@scenario()
def silent_microbit_is_connected_again(world):
    device = start_one(world)
    links = world.microbits.ask("state")["links"]
    mark = world.broker.messages.mark()
    world.microbits.ask("silent", on=True)
    world.microbits.until(0, 120, connected=False)
    world.microbits.ask("silent", on=False)
    expect_return(device, mark)
    expect(world.microbits.ask("state")["links"] > links, "it was not connected again")


@scenario()
def wedged_microbit_is_connected_again(world):
    """For minutes it answers nothing, on this link and on new ones, although the links stay up."""
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("wedged", on=True)
    world.microbits.ask("silent", on=True)
    device.wait_availability("offline", 3 * RETURN, after=mark)
    time.sleep(120)  # wedged for that long
    expect(
        not any(m.payload == "online" for m in world.broker.on(device.topic("availability"), mark)), "online"
    )
    mark = world.broker.messages.mark()
    world.microbits.ask("wedged", on=False)
    world.microbits.ask("silent", on=False)
    device.wait_availability("online", 3 * RETURN, after=mark)
    device.wait_readings(1, RETURN)


@scenario(debians=(12, 13))
def return_beside_a_wedged_one(world):
    """Others do not wait for the services of one that keeps its links and answers nothing."""
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 2 * CONNECT)
    world.microbits.ask("wedged", 2, on=True)
    world.microbits.ask("silent", 2, on=True)
    devices[2].wait_availability("offline", 3 * RETURN)
    times = []
    for n in range(10 * world.factor):
        device = devices[n % 2]
        mark = world.broker.messages.mark()
        begin = time.monotonic()
        world.microbits.ask("disconnect", n % 2)
        expect_return(device, mark)
        times.append(round(time.monotonic() - begin, 1))
        time.sleep(67.3)  # at another point of the other one's attempts each time
    expect(max(times) < 10, f"back after {sorted(times)} s")


@scenario()
def deaf_microbit_is_tried_again(world):
    """It advertises, but accepts no connection at first."""
    world.start()
    world.microbits.ask("deaf", on=True)
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    # A few attempts: it advertises five times a second, and the kernel gives up an attempt after 4 s.
    world.microbits.until(0, 3 * RETURN, unheard=50)
    mark = world.broker.messages.mark()
    world.microbits.ask("deaf", on=False)
    expect_return(device, mark)
