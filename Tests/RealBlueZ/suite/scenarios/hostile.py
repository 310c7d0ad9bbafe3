"""Peripherals that nobody wants."""

import time

from journal import expect
from scenarios.common import ANSWER, BY_PREFIX, CONNECT, RETURN, expect_only, scenario
from scenarios.random_faults import use
from world import BASE, GATEWAY_ID

CROWD = 1000


@scenario()
def crowd_of_impostors(world):
    """A thousand addresses advertise as micro:bits, with changing names, and can never be connected to. A micro:bit that
    was connected before comes first."""
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
    for device in (first, second):
        device.wait_readings(3, RETURN)
        changes = [m.payload for m in world.broker.on(device.topic("availability"), mark)]
        expect(not changes, f"{device.id}: {changes}")
    expect_only(world, devices)
    during, _ = use(world)
    expect(during < before + 8192, f"private memory: {before} KiB, later {during} KiB")
    lines = len(world.gateway.output.since())
    expect(lines < 200, f"{lines} lines of log")

    back = 0
    for _ in range(3):
        mark = world.broker.messages.mark()
        world.microbits.ask("disconnect", second.index)
        second.wait_availability("offline", RETURN, after=mark)
        begin = time.monotonic()
        second.wait_availability("online", RETURN, after=world.broker.messages.mark())
        back = max(back, time.monotonic() - begin)
        time.sleep(20)
    print(f"back after {back:.1f} s at most")

    world.microbits.ask("crowd", count=0)
    mark = world.broker.messages.mark()
    world.microbits.ask("return", late.index)
    late.wait_availability("online", 3 * RETURN, after=mark)
    for device in devices:
        device.wait_readings(3, RETURN)


def start_two(world):
    """A malicious one, and another one."""
    services = ["temperature", "buttons", "uart"]
    world.start(microbits=2, services=services)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 2 * CONNECT)
    devices[0].wait_readings(3, CONNECT)
    return devices


def expect_works(world, device, milliseconds):
    mark = world.broker.messages.mark()
    device.set_period(str(milliseconds))
    device.wait_result("applied", ANSWER, after=mark)


def counter(world, name):
    infos = world.broker.on(f"{BASE}/bridge/{GATEWAY_ID}/info")
    return infos[-1].json()["counters"][name]


@scenario()
def flood_of_notifications(world):
    """One sends 500 notifications a second, more than a micro:bit's link takes, for 20 s: half of them readings, the
    others events."""
    rate, seconds = 250, 20
    flooding, other = start_two(world)
    before, _ = use(world)
    mark = world.broker.messages.mark()
    lines = len(world.gateway.output.since())
    world.microbits.ask("call", method="flood", arguments=[rate, seconds])
    for milliseconds in (400, 500):
        time.sleep(seconds / 4)
        expect_works(world, other, milliseconds)
        expect_works(world, flooding, milliseconds)
        other.wait_readings(3, ANSWER)
    during, _ = use(world)
    time.sleep(seconds)
    other.wait_readings(3, ANSWER)
    received = len(world.broker.on(flooding.topic("readings"), mark))
    expect(received > rate * seconds, f"{received} readings")
    for device in (flooding, other):
        changes = [m.payload for m in world.broker.on(device.topic("availability"), mark)]
        expect(not changes, f"{device.id}: {changes}")
    expect(counter(world, "lost") == 0, "readings were lost")
    after, _ = use(world)
    expect(max(during, after) < before + 4096, f"private memory: {before} KiB, then {during}, {after}")
    lines = len(world.gateway.output.since()) - lines
    expect(lines < 20, f"{lines} lines of log")
    print(f"{received} readings, private memory: {before} KiB, then {during}, {after}")


FORGED = ["", "00", "ffff", "000000", "80" * 19, "ff" * 20, "00" * 20, "c3" * 512]


@scenario()
def values_of_any_length(world):
    """Temperature, period, button and text of any bytes and lengths: what cannot be decoded is counted, and not
    published."""
    forging, other = start_two(world)
    before, _ = use(world)
    lines = len(world.gateway.output.since())
    mark = world.broker.messages.mark()
    for value in FORGED * 3:
        world.microbits.ask("call", method="forge", arguments=[value])
        time.sleep(5)
        # It is read by the next connection.
        world.microbits.ask("disconnect")
        time.sleep(5)
    expect_works(world, other, 500)
    expect(world.gateway.child.poll() is None, "the gateway has ended")
    changes = [m.payload for m in world.broker.on(other.topic("availability"), mark)]
    expect(not changes, f"{other.id}: {changes}")
    for message in world.broker.on(forging.topic("readings"), mark):
        reading = message.json()
        if reading["property"] == "temperature":
            expect(-128 <= reading["value"] <= 127, f"{reading}")
    after, _ = use(world)
    expect(after < before + 4096, f"private memory: {before} KiB, later {after} KiB")
    lines = len(world.gateway.output.since()) - lines
    expect(lines < 300, f"{lines} lines of log")

    world.microbits.ask("call", method="forge", arguments=[None])
    mark = world.broker.messages.mark()
    for device in (forging, other):
        device.wait_readings(3, 2 * RETURN, after=mark)
        expect_works(world, device, 600)
    time.sleep(60)
    malformed = counter(world, "malformed")
    expect(malformed > 10, f"malformed: {malformed}")
    print(f"malformed: {malformed}, {lines} lines of log")
