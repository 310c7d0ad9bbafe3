"""Another program uses the adapter as Home Assistant's own Bluetooth does: it scans all the time, and when it
believes that its scan is stuck, it switches the adapter off and on."""

import time

from journal import expect
from scenarios.common import ALL, ANSWER, BY_PREFIX, CONNECT, RETURN, scenario
from world import BASE, GATEWAY_ID

ADAPTER = "/org/bluez/hci0"
INTERVAL = 20
"""Seconds from one restart of the adapter to the next."""
# With kernel 7.2, bluetoothd 5.87 once did not answer the other program's StartDiscovery just after the adapter was on.


class Scanner:
    def __init__(self, world):
        from bus import Bus  # it needs dbus-fast, which the guest alone has

        self.world = world
        self.bus = Bus(ADAPTER)
        self.scan()

    def call(self, member, signature="", *arguments):
        mark = self.bus.events.mark()
        self.bus.call(ADAPTER, f"Adapter1.{member}", signature, *arguments)
        answers = [event for event in self.bus.events.since(mark) if event.startswith(f"<\tA\t{member}\t")]
        expect(answers[0].endswith("\tok"), f"the other program got {answers}")

    def scan(self):
        from dbus_fast import Variant

        filter = {"Transport": Variant("s", "le"), "DuplicateData": Variant("b", True)}
        self.call("SetDiscoveryFilter", "a{sv}", filter)
        self.call("StartDiscovery")

    def restart_adapter(self):
        self.world.set_powered(False)
        self.world.set_powered(True)
        self.scan()


def is_online(message):
    return message.topic.endswith("/availability") and message.payload == "online"


def is_reading(message):
    return message.topic.endswith("/readings")


@scenario(debians=ALL, old_kernel=ALL)
def adapter_shared_with_a_scanner(world):
    """A controller reports each peripheral once in a round of the scan, which takes 10.24 s, and the kernel
    connects when it is reported: so while another program scans, each link may take that long, and not all are
    back after 20 s."""
    world.start(microbits=3)
    scanner = Scanner(world)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 3 * CONNECT)

    messages = world.broker.messages
    slowest = 0
    for _ in range(5 * world.factor):
        mark = messages.mark()
        begin = time.monotonic()
        scanner.restart_adapter()
        messages.wait(is_online, INTERVAL, "'online'", mark)
        messages.wait(is_reading, INTERVAL, "reading", messages.mark())
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(max(0, begin + INTERVAL - time.monotonic()))

    # Nothing is left of it: all send, none goes offline, there is no fault, and the other's scan goes on.
    begin = time.monotonic()
    mark = messages.mark()
    for device in devices:
        device.wait_readings(1, RETURN, after=mark)
    took = time.monotonic() - begin
    mark = messages.mark()
    for device in devices:
        device.wait_readings(30, RETURN, after=mark)
    away = [
        message.topic
        for message in messages.since(mark)
        if message.topic.endswith("/availability") and message.payload == "offline"
    ]
    expect(not away, f"offline again: {away}")
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/health", "")
    health = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/health", ANSWER).json()["data"]
    expect(not health["findings"], f"health reports {health['findings']}")
    expect(not world.gateway.said("resetting the adapter"), "the gateway has reset the adapter")
    scanner.call("StopDiscovery")
    print(f"the first readings were back after at most {slowest:.1f} s, at last all after {took:.1f} s more")
