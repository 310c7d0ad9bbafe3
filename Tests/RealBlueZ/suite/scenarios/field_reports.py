"""Peripherals, adapters and programs as users report them to Bleak, habluetooth and BlueZ."""

import json
import time

from journal import expect
from scenarios.common import ANSWER, BY_PREFIX, CONNECT, RETURN, scenario
from scenarios.microbit_services import wait_value
from scenarios.profiles import peripheral
from scenarios.shared_adapter import ADAPTER
from world import BASE, GATEWAY_ID, OUT

TWO = peripheral(
    "Thing", "181a", ("2a6e", "read write notify", {"value": "15"}), ("2a6f", "read notify", {"value": "32"}), advertised=False
)


def prepare(world):
    """Starts a peripheral that is described, and its air."""
    with open(f"{OUT}/peripherals.json", "w") as file:
        json.dump([TWO], file)
    world.start(microbits=0, options=["--describe", f"{OUT}/peripherals.json"])


def call(world, method, *arguments):
    world.microbits.ask("call", 0, method=method, arguments=arguments)


def start(world, access=("read", "notify")):
    """The gateway, and the device: `access` is that of "one"; "two" is read and notified."""
    properties = {
        name: {"service": "181a", "characteristic": uuid, "access": access, "type": "uint8"}
        for name, uuid, access in [("one", "2a6e", access), ("two", "2a6f", ["read", "notify"])]
    }
    entries = [{"match": {"name": "Thing"}, "profile": "thing", "id": "thing"}]
    world.start_gateway(entries, profiles={"thing": {"requires": ["181a"], "properties": properties}})
    [device] = world.others(["thing"])
    return device


def findings(world):
    mark = world.broker.messages.mark()
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/health", "")
    answer = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/health", ANSWER, after=mark).json()
    return [finding["text"] for finding in answer["data"]["findings"]]


def start_unreadable(world):
    """The device is online, and answers reads of "one" with the "unlikely error", as many programs do."""
    prepare(world)
    call(world, "refuse_reads", "2a6e", 0x0E)
    device = start(world)
    device.wait_availability("online", CONNECT)
    return device


@scenario()
def one_property_that_cannot_be_read(world):
    """The rest is used, and the error is told."""
    device = start_unreadable(world)
    mark = world.broker.messages.mark()
    call(world, "set_value", "2a6f", "19")
    wait_value(device, "two", 25, mark)
    expect([text for text in findings(world) if "ATT error: 0x0e" in text], "no finding about the property")


@scenario()
def one_property_that_cannot_be_read_at_first(world):
    """It is tried again on the same link."""
    device = start_unreadable(world)
    mark = world.broker.messages.mark()
    call(world, "refuse_reads", "2a6e", 0)
    call(world, "set_value", "2a6e", "17")
    wait_value(device, "one", 23, mark, within=90)
    expect(not findings(world), "the property can be used, and a finding says that it cannot")


@scenario()
def no_property_that_can_be_read(world):
    """It is not online with nothing to say."""
    prepare(world)
    for uuid in ("2a6e", "2a6f"):
        call(world, "refuse_reads", uuid, 0x80)
    device = start(world)
    time.sleep(60)
    online = [m for m in world.broker.on(device.topic("availability")) if m.payload == "online"]
    found = findings(world)
    expect(not online and found, f"availability {online}, findings {found}")


@scenario()
def restarts_after_each_write(world):
    """It ends the link before the value is read back: the value is confirmed on the next link."""
    prepare(world)
    device = start(world, ("read", "write"))
    device.wait_availability("online", CONNECT)
    world.microbits.ask("slow", seconds=0.05)
    call(world, "end_links_after_writes")
    mark = world.broker.messages.mark()
    world.broker.publish(device.topic("one/set"), "7")
    device.wait_availability("online", RETURN, after=mark)
    time.sleep(60)
    results = [m.json()["status"] for m in world.broker.on(device.topic("one/result"), mark)]
    writes = world.microbits.others()[0]["writes"]["2a6e"]
    expect(results[-1] == "applied" and len(writes) == 1, f"results {results}, written {writes}")


@scenario()
def pattern_of_another_program(world):
    """Another program scans for a name: micro:bits are found all the same."""
    from bus import Bus
    from dbus_fast import Variant

    world.start()
    bus = Bus(ADAPTER)
    pattern = {"Transport": Variant("s", "le"), "Pattern": Variant("s", "Nobody")}
    bus.call(ADAPTER, "Adapter1.SetDiscoveryFilter", "a{sv}", pattern)
    bus.call(ADAPTER, "Adapter1.StartDiscovery")
    world.start_gateway(BY_PREFIX)
    world.devices()[0].wait_readings(4, RETURN)


@scenario()
def controller_with_few_links(world):
    """It refuses the second link at once, and bluetoothd forgets the device: it is not tried without a pause."""
    world.start(microbits=3)
    world.microbits.ask("most_links", count=1)
    world.start_gateway(BY_PREFIX)
    world.devices()
    time.sleep(5)
    world.listen_to_bus()
    time.sleep(60)
    calls = [line for line in world.bus.output.since() if "member=Connect" in line]
    expect(len(calls) < 30, f"{len(calls)} calls of Connect in 60 s")
    expect([text for text in findings(world) if "no more connections" in text], f"findings {findings(world)}")


@scenario()
def removed_while_connecting(world):
    """Another program removes the device while Connect is under way, which bluetoothd never answers: others do not wait for it."""
    from bus import Bus

    world.start(microbits=2)
    bus = Bus(ADAPTER)
    world.start_gateway(BY_PREFIX)
    first, second = world.devices()
    for device in (first, second):
        device.wait_readings(2, CONNECT)
    world.microbits.ask("deaf", on=True)
    world.microbits.ask("disconnect")
    time.sleep(2)
    bus.call(ADAPTER, "Adapter1.RemoveDevice", "o", f"{ADAPTER}/dev_" + first.address.replace(":", "_"))
    world.microbits.ask("disconnect", 1)
    begin = time.monotonic()
    second.wait_readings(1, RETURN, after=world.broker.messages.mark())
    took = time.monotonic() - begin
    expect(took < 12, f"the other one was back after {took:.1f} s")
