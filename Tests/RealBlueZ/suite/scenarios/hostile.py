"""Peripherals that nobody wants."""

import time

from journal import expect
from scenarios.common import BY_PREFIX, CONNECT, RETURN, expect_only, scenario
from scenarios.random_faults import use

CROWD = 1000
CROWDED = 15 * 60
"""Seconds in which a micro:bit is connected although a crowd asks for connections that fail."""


@scenario()
def crowd_of_impostors(world):
    """A thousand addresses advertise as micro:bits, with changing names, and can never be connected to."""
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    first, second, late = devices = world.devices()
    world.microbits.ask("vanish", late.index)
    for device in (first, second):
        device.wait_availability("online", 2 * CONNECT)
    before, _ = use(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("crowd", count=CROWD)
    time.sleep(60)

    # Those that are connected stay so; one that was, and one that never was, get a connection.
    world.microbits.ask("disconnect", second.index)
    begin = time.monotonic()
    second.wait_availability("offline", RETURN, after=mark)
    back = world.broker.messages.mark()
    second.wait_availability("online", CROWDED, after=back)
    known = time.monotonic() - begin
    world.microbits.ask("return", late.index)
    begin = time.monotonic()
    late.wait_availability("online", CROWDED, after=mark)
    new = time.monotonic() - begin
    for device in devices:
        device.wait_readings(3, RETURN)
    changes = [m.payload for m in world.broker.on(first.topic("availability"), mark)]
    expect(not changes, f"the first micro:bit: {changes}")
    expect_only(world, devices)
    during, _ = use(world)
    lines = len(world.gateway.output.since())

    world.microbits.ask("crowd", count=0)
    time.sleep(60)
    for device in devices:
        device.wait_readings(3, RETURN)
    after, _ = use(world)
    expect(after < before + 4096, f"private memory: {before} KiB, later {after} KiB")
    print(
        f"connected again after {known:.0f} s, a new one after {new:.0f} s; {lines} lines of log; "
        f"private memory {before}, {during}, {after} KiB"
    )
