"""Subscriptions that fail at any moment of a connection's set-up: the gateway recovers from each failure.

In bluetoothds before 5.84 an AcquireNotify, by which other programs subscribe, is never answered when its write of the
client configuration fails. From then on the subscription is stuck: AcquireNotify and StartNotify are refused with
"Notify acquired" until bluetoothd is started again, and StopNotify and RemoveDevice crash it.
"""

import signal
import time

from journal import expect
from scenarios.common import ALL, BY_PREFIX, CONNECT, RETURN, expect_return, scenario, start_one

BOTH = (12, 13)
REMEDY = "systemctl restart bluetooth"
SOON = 20
"""Seconds from a failure to the next reading, when there was none before: a back-off of a second or two and a
connection."""
LONGEST = RETURN + CONNECT
"""The same when there were many."""
FAILURES = (("drop", None), ("error", None), ("silence", 3))
"""What the micro:bit does instead of confirming a write of the client configuration, and for how long."""
PACKETS = 30
"""Of a connection's set-up, in both directions: about 20 until it is online, then its device information."""


def expect_alive(world):
    expect(world.bluetoothd.child.poll() is None, "bluetoothd has ended")
    expect(world.gateway.child.poll() is None, "the gateway has ended")


def told(world, text):
    return [line for line in world.gateway.output.since() if text in line]


def fail_subscription(world, device, **failure):
    """It fails at the next connection, and then there are readings again."""
    before = world.microbits.ask("fail", step="subscribe", **failure)
    device.reconnect()
    mark = world.broker.messages.mark()
    world.microbits.until(0, SOON, faults=before["faults"] + failure.get("times", 1))
    device.wait_availability("online", SOON, after=mark)
    device.wait_readings(5, SOON)


@scenario(debians=BOTH)
def subscription_fails(world):
    world.start()
    world.listen_to_bus()
    world.microbits.ask("fail", step="subscribe", how="drop")
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    device.wait_readings(5, CONNECT)
    for how, seconds in FAILURES:
        # Once, and again on the next link.
        for times in (1, 2):
            fail_subscription(world, device, how=how, times=times, seconds=seconds)
    expect(not world.bus.said("Notify acquired"), "a subscription is stuck")
    expect_alive(world)


@scenario(debians=BOTH)
def reflashed_with_another_table(world):
    """bluetoothd would subscribe at the old handle on the next link, before it knows the new services: where the
    temperature's configuration was, there is the accelerometer's period now."""
    world.start(services=["temperature_reversed"])
    world.start_gateway(BY_PREFIX)
    world.devices()[0].wait_readings(2, CONNECT)
    period = world.microbits.ask("serve", services=["accelerometer"], changed=None)["acceleration_period"]
    links = world.microbits.ask("disconnect")["links"]
    world.microbits.until(0, RETURN, links=links + 1)
    time.sleep(10)
    found = world.microbits.ask("state")["acceleration_period"]
    expect(found == period, f"the period is {found} ms, it was {period} ms")


def expect_heals(world, device):
    """After a restart of bluetoothd there are notifications again."""
    mark = world.broker.messages.mark()
    world.restart_bluetoothd()
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(device, mark)
    notified = world.microbits.ask("state")["notified"]
    device.wait_readings(5, RETURN)
    expect(world.microbits.ask("state")["notified"] > notified, "it is still polled")
    expect_alive(world)


@scenario(debians=BOTH)
def subscription_that_another_program_left_stuck(world):
    """The gateway polls, and logs the remedy once; after the remedy there are notifications again."""
    world.start()
    world.microbits.ask("fail", step="subscribe", how="drop")
    expect(world.acquire_notify() == "no answer", "the other program's subscription did not fail")
    expect(world.is_notify_acquired(), "bluetoothd is fixed: this scenario tests nothing")

    world.listen_to_bus()
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    for temperature in (30, 31):
        world.microbits.ask("temperature", value=temperature)
        device.wait("temperature", RETURN, lambda m: m.payload == str(temperature), what=f"'{temperature}'")
    device.set_period("500")
    device.wait_result("applied", RETURN)
    mark = world.broker.messages.mark()
    world.microbits.ask("disconnect")
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(device, mark)
    device.wait_readings(5, RETURN)
    expect(
        world.microbits.ask("state")["notified"] == 0, "there were notifications: this scenario says nothing"
    )
    expect(len(told(world, REMEDY)) == 1, f"the remedy was told {len(told(world, REMEDY))} times")
    for call in ("StopNotify", "RemoveDevice"):
        expect(not world.bus.said(f"member={call}"), f"{call} was called, which crashes bluetoothd")
    expect_alive(world)
    expect_heals(world, device)


@scenario(debians=ALL)
def link_drops_during_set_up(world):
    """The link falls silent at a random packet of its set-up, and ends at once or a little later."""
    device = start_one(world)
    for _ in range(25 * world.factor):
        after = world.random.randrange(1, PACKETS)
        linger = world.random.choice((0, world.random.uniform(0, 5)))
        drops = world.microbits.ask("drop", after=after, linger=linger)["drops"]
        device.reconnect()
        world.microbits.until(0, LONGEST, drops=drops + 1)
        mark = world.broker.messages.mark()
        device.wait_availability("online", SOON, after=mark)
        device.wait_readings(2, SOON, after=mark)
    expect(not told(world, REMEDY) and not world.is_notify_acquired(), "a subscription is stuck")
    expect(not told(world, "pairing"), "it was taken for one that wants pairing")
    expect_alive(world)


def restart_bluetoothd_during(world, device, step):
    """The gateway is ended, or killed, while the micro:bit delays that step of a connection's set-up."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        before = world.microbits.ask("state")
        if step == "connect":
            world.microbits.ask("deaf", on=True)
            reached = {"unheard": before["unheard"] + 2}
        else:
            world.microbits.ask("fail", step=step, how="silence")
            reached = {"faults": before["faults"] + 1}
        device.reconnect()
        world.microbits.until(0, SOON, **reached)
        mark = world.broker.messages.mark()
        world.restart_bluetoothd(number)
        world.microbits.ask("deaf", on=False)
        expect_return(device, mark)
    expect_alive(world)


@scenario(debians=BOTH)
def bluetoothd_restarts_during_set_up(world):
    device = start_one(world)
    for step in ("connect", "resolve", "read", "subscribe"):
        restart_bluetoothd_during(world, device, step)


@scenario(debians=BOTH)
def microbit_that_wants_pairing(world):
    """The log names it, and the other one is not affected; once it requires no pairing, it comes online."""
    world.start(microbits=2)
    world.microbits.ask("security", mode="just_works", error=world.random.choice((0x05, 0x0F)))
    world.start_gateway(BY_PREFIX)
    closed, other = world.devices()
    world.gateway.output.wait(lambda line: "pairing" in line, 3 * RETURN, "word of the pairing in the log")
    other.wait_availability("online", CONNECT)
    mark = world.broker.messages.mark()
    other.wait_readings(120, 2 * 120)
    expect(not world.broker.on(other.topic("availability"), mark), "the other one went away, too")
    expect(not world.broker.on(closed.topic("readings")), "a reading of the one that wants pairing")
    expect(len(told(world, "pairing")) == 1, f"told {len(told(world, 'pairing'))} times")
    mark = world.broker.messages.mark()
    world.microbits.ask("security", mode="open")
    closed.wait_availability("online", 5 * RETURN, after=mark)
    expect_alive(world)


@scenario(debians=BOTH)
def no_reading_is_published_twice(world):
    """With notifications by signals, bluetoothd sends the result of a ReadValue as a signal as well."""
    world.start()
    world.microbits.ask("silent", on=True)
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    device.set_period("500")  # it is read back, so that something is read after the subscription
    device.wait_result("applied", CONNECT)
    time.sleep(1)  # a second message would have arrived
    readings = world.broker.on(device.topic("readings"))
    expect(len(readings) == 1, f"the temperature was read once: {[str(r) for r in readings]}")
