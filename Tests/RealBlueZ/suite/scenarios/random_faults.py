"""One random fault after the other: each heals, no reading is lost, and nothing is left behind."""

import os
import re
import signal
import subprocess
import time
from collections import defaultdict
from statistics import median

from journal import expect
from scenarios.common import BY_PREFIX, CONNECT, RETURN, scenario
from world import START

MICROBITS = 5
LENGTH = 600
"""Seconds."""

HEAL = 3 * RETURN
"""Seconds from the end of a fault to the readings of all micro:bits."""


class Faults:
    """Each public method injects a fault, and ends it."""

    def __init__(self, world):
        self.world = world
        self.random = world.random

    def _pause(self, least, most):
        time.sleep(self.random.uniform(least, most))

    def _one(self):
        return self.random.randrange(MICROBITS)

    def _during(self, op, least, most):
        i = self._one()
        self.world.microbits.ask(op, i, on=True)
        self._pause(least, most)
        self.world.microbits.ask(op, i, on=False)

    def link_lost(self):
        self.world.microbits.ask("disconnect", self._one())

    def reset(self):
        self.world.microbits.ask("reset", self._one())

    def out_of_range(self):
        i = self._one()
        self.world.microbits.ask("vanish", i)
        self._pause(1, 120)
        self.world.microbits.ask("return", i)

    def silent(self):
        self._during("silent", 5, 60)

    def wedged(self):
        self._during("wedged", 5, 60)

    def unstable(self):
        i = self._one()
        self.world.microbits.ask("unstable", i, on=True)
        self.world.microbits.ask("disconnect", i)
        self._pause(5, 60)
        self.world.microbits.ask("unstable", i, on=False)

    def deaf(self):
        i = self._one()
        self.world.microbits.ask("deaf", i, on=True)
        self.world.microbits.ask("disconnect", i)
        self._pause(5, 60)
        self.world.microbits.ask("deaf", i, on=False)

    def subscription_fails(self):
        i = self._one()
        how = self.random.choice(["drop", "error"])
        self.world.microbits.ask("fail", i, step="subscribe", how=how)
        self.world.microbits.ask("disconnect", i)

    def adapter_off(self):
        self.world.set_powered(False)
        self._pause(1, 60)
        self.world.set_powered(True)

    def bluetoothd_killed(self):
        self.world.restart_bluetoothd(signal.SIGKILL)

    def bluetoothd_restarted(self):
        self.world.restart_bluetoothd()

    def _hung(self, process):
        process.kill(signal.SIGSTOP)
        self._pause(1, 60)
        process.kill(signal.SIGCONT)

    def bluetoothd_hung(self):
        self._hung(self.world.bluetoothd)

    def broker_hung(self):
        self._hung(self.world.broker.server)


def descriptors(pid):
    """How many the process has open, but for the files of the spool, which are open while something waits for the broker."""
    count = 0
    for link in os.scandir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(link.path)
        except FileNotFoundError:  # closed in the meantime
            continue
        count += ".spool" not in target or target.endswith(" (deleted)")
    return count


def use(world):
    """The gateway's private memory in KiB, its descriptors, and the bus's match rules and connections."""
    pid = world.gateway.child.pid
    with open(f"/proc/{pid}/status") as status:
        memory = int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1))
    answer = subprocess.run(
        ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus"]
        + ["org.freedesktop.DBus.Debug.Stats.GetStats"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=START,
    ).stdout
    counts = [
        int(re.search(rf'"{name}"\s+variant\s+uint32 (\d+)', answer).group(1))
        for name in ("MatchRules", "ActiveConnections")
    ]
    return memory, [descriptors(pid), *counts]


@scenario(debians=(12, 13))
def random_faults(world):
    world.start(microbits=MICROBITS)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", MICROBITS * CONNECT)
    faults = Faults(world)
    kinds = [name for name in vars(Faults) if not name.startswith("_")]
    times = defaultdict(list)

    def inject(kind):
        getattr(faults, kind)()
        start = time.monotonic()
        mark = world.broker.messages.mark()
        for device in devices:
            # More than what a link that has ended could still send.
            device.wait_readings(3, HEAL, after=mark)
        times[kind].append(time.monotonic() - start)

    # Once each: afterwards the gateway has the memory and the descriptors that it keeps.
    for kind in kinds:
        inject(kind)
    memory, before = use(world)
    end = time.monotonic() + LENGTH * world.factor
    while time.monotonic() < end:
        inject(world.random.choice(kinds))
        time.sleep(world.random.uniform(1, 60))
    later, after = use(world)

    expect(world.gateway.child.poll() is None, "the gateway has ended")
    expect(after == before, f"descriptors, match rules, connections: {before}, later {after}")
    expect(later < memory + 1024, f"private memory of {memory} KiB, later {later} KiB")
    count = 0
    for device in devices:
        readings = [m.json()["sequence"] for m in world.broker.on(device.topic("readings"))]
        count += len(readings)
        missing = set(range(1, max(readings) + 1)) - set(readings)
        expect(not missing, f"{device.id} has lost {sorted(missing)}")
    heal = ", ".join(f"{kind} {len(t)}: {median(t):.1f} {max(t):.1f} s" for kind, t in sorted(times.items()))
    print(f"{count} readings, {later - memory:+} KiB, healed (median and longest): {heal}")
