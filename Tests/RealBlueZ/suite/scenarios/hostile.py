"""Peripherals that nobody wants."""

import time

from journal import expect
from scenarios.common import BY_PREFIX, CONNECT, RETURN, expect_only, scenario
from scenarios.random_faults import use

CROWD = 1000


@scenario()
def crowd_of_impostors(world):
    """A thousand addresses advertise as micro:bits, with changing names, and can never be connected to. Meanwhile a
    micro:bit that loses its link may have to wait."""
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    first, second, late = devices = world.devices()
    world.microbits.ask("vanish", late.index)
    for device in (first, second):
        device.wait_availability("online", 2 * CONNECT)
    before, _ = use(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("crowd", count=CROWD)
    time.sleep(300)
    for device in (first, second):
        device.wait_readings(3, RETURN)
        changes = [m.payload for m in world.broker.on(device.topic("availability"), mark)]
        expect(not changes, f"{device.id}: {changes}")
    expect_only(world, devices)
    during, _ = use(world)
    expect(during < before + 4096, f"private memory: {before} KiB, later {during} KiB")
    lines = len(world.gateway.output.since())
    expect(lines < 200, f"{lines} lines of log")

    world.microbits.ask("crowd", count=0)
    mark = world.broker.messages.mark()
    world.microbits.ask("disconnect", second.index)
    second.wait_availability("offline", RETURN, after=mark)
    back = world.broker.messages.mark()
    world.microbits.ask("return", late.index)
    # The attempts to connect to the crowd that have begun come first.
    second.wait_availability("online", 3 * RETURN, after=back)
    late.wait_availability("online", 3 * RETURN, after=back)
    for device in devices:
        device.wait_readings(3, RETURN)
