"""What bluetoothd reports when a connected peripheral changes its services (Service Changed).

Without the gateway, which relies on these facts. `services_change` is compared with ../../recordings.
"""

import os
import re
import select
import time

from journal import expect
from scenarios.common import ANSWER, CONNECT, scenario
from world import OUT, TEMPERATURE

BOTH = (12, 13)
ADAPTER = "/org/bluez/hci0"
CHARACTERISTIC = "GattCharacteristic1"
BUTTON_A = "e95dda90-251d-470a-a062-fa1922dfa9a8"
PERIOD = "e95d1b25-251d-470a-a062-fa1922dfa9a8"
ALL = (0x0001, 0xFFFF)
"""What the peripheral says has changed, as its first and last handle."""
AFTER_TEMPERATURE = (0x0017, 0xFFFF)
ATT_TIME = 0.05
"""Seconds for each ATT answer, so that what happens in between can be seen."""
QUIET = 3
"""Seconds after which nothing follows from a change any more."""


class Session:
    """A program that is connected to the first micro:bit and subscribed to its temperature."""

    def __init__(self, world):
        from bus import Bus  # it needs dbus-fast, which the guest alone has

        self.world = world
        self.device = f"{ADAPTER}/dev_" + world.microbits.all()[0]["address"].replace(":", "_")
        self.bus = Bus(self.device)
        self.bus.call(ADAPTER, "Adapter1.StartDiscovery")
        self.bus.wait("InterfacesAdded", CONNECT, "micro:bit")
        self.bus.call(ADAPTER, "Adapter1.StopDiscovery")
        self.connect()
        world.microbits.ask("slow", seconds=ATT_TIME)
        self.subscribe()

    def connect(self):
        mark = self.bus.events.mark()
        self.bus.call(self.device, "Device1.Connect")
        self.bus.wait("ServicesResolved=b:true", CONNECT, "ServicesResolved", mark)
        time.sleep(QUIET)

    def reconnect(self):
        self.bus.record("*", "disconnect")
        self.world.microbits.ask("disconnect")
        time.sleep(QUIET)
        self.connect()

    def path(self, uuid=TEMPERATURE):
        return self.bus.characteristics()[uuid]

    def read(self, path):
        self.bus.call(path, f"{CHARACTERISTIC}.ReadValue", "a{sv}", {})

    def subscribe(self):
        self.bus.call(self.path(), f"{CHARACTERISTIC}.StartNotify")
        time.sleep(QUIET)

    def serve(self, *services, changed=ALL, settle=QUIET):
        """The micro:bit serves these from now on; `changed`: the handles that it indicates; None: no indication."""
        handles = " changed %04x-%04x" % changed if changed else ""
        self.bus.record("*", f"serve {' '.join(services)}{handles}")
        self.world.microbits.ask("serve", services=services, changed=changed)
        time.sleep(settle)


def expect_as_recorded(session, name, after, without=(), signals=True):
    """The session's events are those of ../../recordings; they are left in the scenario's folder, too.
    `without`: signals with one of these in their path or name do not count; without `signals`, none does."""
    with open("/etc/os-release") as file:
        debian = re.search(r'VERSION_ID="(\d+)"', file.read())[1]
    lines = [
        line
        for line in session.bus.events.since(after)
        if not (line[0] == "!" and any(text in "\t".join(line.split("\t")[1:3]) for text in without))
        # When bluetoothd forgets the signal strength varies.
        and not line.endswith("\tRSSI")
    ]
    with open(f"{OUT}/{name}-debian{debian}.tsv", "w") as file:
        file.writelines(line + "\n" for line in lines)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/../../recordings/{name}-debian{debian}.tsv") as file:
        recorded = [line for line in file.read().splitlines() if not line.endswith("\tRSSI")]
    if not signals:
        lines, recorded = ([line for line in all if line[0] != "!"] for all in (lines, recorded))
    for number, (line, known) in enumerate(zip(lines, recorded), 1):
        expect(line == known, f"line {number}: {line}\n  is recorded as {known}")
    expect(len(lines) == len(recorded), f"{len(lines)} lines instead of {len(recorded)}")


@scenario(debians=BOTH)
def services_change(world):
    world.start()
    session = Session(world)
    mark = session.bus.events.mark()
    # Added at the end of the table: the temperature and its subscription stay.
    session.serve("temperature", "buttons", changed=AFTER_TEMPERATURE)
    session.serve("temperature", changed=AFTER_TEMPERATURE)
    # It indicates that everything has changed, but nothing has.
    session.serve("temperature")
    # Other flags at the same handles: bluetoothd does not notice, not even on the next link.
    session.serve("temperature_read_only")
    session.reconnect()
    session.subscribe()
    # Another service in the same handles.
    session.serve("temperature", "buttons")
    session.serve("temperature", "led")
    # The temperature elsewhere, and something else where it was.
    old = session.path()
    session.serve("buttons", "temperature")
    session.read(old)
    session.subscribe()
    # Two changes in a row.
    session.serve("temperature", "buttons", settle=0)
    session.serve("temperature", "led")
    session.subscribe()
    # Without an indication: until the next link, reads return values of other characteristics.
    old = session.path()
    session.serve("buttons", changed=None)
    session.read(old)
    session.reconnect()
    expect_as_recorded(session, "services_change", mark)


@scenario(debians=BOTH)
def service_goes_with_its_socket(world):
    """The socket of AcquireNotify ends, and the link stays."""
    world.start()
    session = Session(world)
    session.bus.call(session.path(), f"{CHARACTERISTIC}.StopNotify")
    reply = session.bus.call(session.path(), f"{CHARACTERISTIC}.AcquireNotify", "a{sv}", {})
    socket = select.poll()
    socket.register(reply.unix_fds[0], 0)
    expect(not socket.poll(0), "the socket has ended already")
    session.serve("buttons")
    expect(socket.poll(0), "the socket has not ended")
    expect(world.microbits.ask("state")["connected"], "the link has ended")


def operate_while_it_goes(world, uuid, member, signature, *arguments):
    """An operation on a characteristic that bluetoothd removes meanwhile: it must stay without an answer."""
    world.start()
    session = Session(world)
    session.serve("temperature", "buttons")
    path = session.path(uuid)
    session.serve("led", settle=0)
    mark = session.bus.events.mark()
    # The removal comes with the answer to the third request, which is in progress now. The first began with the
    # indication, the confirmation of which `serve` awaited for as long as an answer takes.
    time.sleep(1.5 * ATT_TIME)
    session.bus.begin(path, f"{CHARACTERISTIC}.{member}", signature, *arguments)
    session.bus.wait(f"{path}\tInterfacesRemoved", ANSWER, "removal", mark)
    time.sleep(40)  # longer than the time-out of an ATT request
    answers = [line for line in session.bus.events.since(mark) if line.startswith(f"<\tA\t{member}")]
    # If bluetoothd ends, the bus answers for it.
    answered = any("NoReply" not in line for line in answers)
    expect(not answered, "bluetoothd is fixed: this scenario tests nothing")


@scenario(debians=BOTH)
def read_of_a_service_that_goes(world):
    operate_while_it_goes(world, BUTTON_A, "ReadValue", "a{sv}", {})
    expect(world.bluetoothd.child.poll() is None, "bluetoothd has ended")


@scenario(debians=BOTH)
def write_of_a_service_that_goes(world):
    operate_while_it_goes(world, PERIOD, "WriteValue", "aya{sv}", b"\x64\x00", {})
    expect(world.bluetoothd.child.poll() is None, "bluetoothd has ended")


@scenario(debians=BOTH)
def subscription_to_a_service_that_goes(world):
    """bluetoothd uses freed memory: 5.82 crashes at once, 5.66 may."""
    operate_while_it_goes(world, BUTTON_A, "StartNotify", "")
    print("bluetoothd goes on" if world.bluetoothd.child.poll() is None else "bluetoothd crashed")
