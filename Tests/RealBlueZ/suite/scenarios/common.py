"""What the scenarios share: their registry, their deadlines, and checks."""

from datetime import datetime
from statistics import median

from journal import expect
from world import BASE

CONNECT = 30
"""Seconds from being heard to the first reading, for one micro:bit."""
RETURN = 60
"""The same after a fault: with the gateway's back-off."""
ANSWER = 15
"""Seconds from a command to its result."""

BY_PREFIX = [{"match": {"name_prefix": "BBC micro:bit"}}]

ALL = (12, 13, "forky")
"""The Debians whose bluetoothds there are."""

scenarios = {}


def scenario(virtual_time=True, debians=(12,), old_kernel=()):
    """Registers a scenario by its name. Without virtual time it also shows what CPU time and latencies do.
    `debians` are the ones on whose bluetoothd it runs when no other is asked for; `old_kernel` are those of them with
    the kernel of Debian 12 (6.1) instead of forky's."""

    def register(function):
        function.virtual_time = virtual_time
        function.debians = debians
        function.old_kernel = old_kernel
        scenarios[function.__name__] = function
        return function

    return register


def start_one(world, **entry):
    """Starts everything, with one micro:bit that is online."""
    world.start()
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}} | entry])
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    device.wait_readings(1, CONNECT)
    return device


def expect_only(world, devices):
    """No device has topics but these."""
    topics = {
        message.topic.split("/")[1]
        for message in world.broker.messages.since()
        if message.topic.startswith(BASE)
    }
    unknown = topics - {device.id for device in devices} - {"bridge"}
    expect(not unknown, f"topics of unknown devices: {unknown}")


def expect_return(device, after):
    device.wait_availability("online", RETURN, after=after)
    device.wait_readings(1, RETURN)


def expect_cadence(device, period):
    """From now on readings come once in a period (in seconds)."""
    readings = device.wait_readings(12, ANSWER + 12 * period)
    # The firmware uses a new period from the sample after next on.
    times = [datetime.fromisoformat(reading["time"]).timestamp() for reading in readings[2:]]
    found = median(later - earlier for earlier, later in zip(times, times[1:]))
    expect(abs(found - period) < 0.2 * period, f"readings come every {found:.3f} s, the period is {period} s")
