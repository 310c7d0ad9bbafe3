"""Micro:bits that are only heard, beside others that are connected."""

import json
import signal
import subprocess
import time

from journal import expect
from scenarios.common import ALL, ANSWER, BY_PREFIX, CONNECT, scenario
from scenarios.profiles import SHIPPED
from world import BASE, GATEWAY_ID, OUT, Process

BEACONS = 30
LINKS = 7
FLOOD = 1000
ROUND = 25
"""Seconds in which each is heard: the kernel's scan reports it once in a round of 10 s."""
OFFLINE_AFTER = 60
STAY = OFFLINE_AFTER + 15
"""Seconds after which one that was not heard would be offline."""


def uid(instance):
    return "00ec" + "%020x" % 7 + "%012x" % instance


def listed(world):
    mark = world.broker.messages.mark()
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/devices", "")
    answer = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/devices", ANSWER, after=mark)
    return {device["identifier"]: device for device in answer.json()["data"]}


def start_beacons(world):
    """Starts everything; the addresses and ids of the beacons, when they and the micro:bits are online."""
    world.start(microbits=LINKS)
    data = [uid(i) for i in range(BEACONS)]
    addresses = world.microbits.ask("beacons", service="feaa", data=data)["addresses"]
    ids = [address.replace(":", "").lower() for address in addresses]
    named = [{"match": {"identifier": address}, "profile": "eddystone", "offline_after": OFFLINE_AFTER} for address in addresses]
    anyone = {"match": {"service": "feaa"}, "profile": "eddystone"}
    profiles = SHIPPED.removeprefix("/host")
    world.start_gateway(named + [anyone] + BY_PREFIX, profiles_directory=profiles)
    for device in world.devices():
        device.wait_availability("online", LINKS * CONNECT)
    for i, id in enumerate(ids):
        world.broker.wait(f"{BASE}/{id}/availability", ROUND, lambda m: m.payload == "online")
        world.broker.wait(f"{BASE}/{id}/uid", ROUND, lambda m: m.json()["instance"] == i)
    return addresses, ids


def expect_ways(world, way, least):
    """`doctor` says that each beacon is heard in this way, and at least so many times a minute."""
    _, said = world.run_gateway("doctor", "--config", f"{OUT}/config.json", within=60)
    lines = [line for line in said.splitlines() if "times a minute" in line]
    expect(len(lines) == BEACONS and all(f"times a minute, by {way}" in line for line in lines), said)
    rates = [int(line.split("heard ")[1].split()[0]) for line in lines]
    expect(min(rates) >= least, f"heard only {min(rates)} times a minute")
    print(f"heard {min(rates)} to {max(rates)} times a minute by {way};")


@scenario()
def thirty_beacons_and_seven_links(world):
    addresses, ids = start_beacons(world)
    microbits = world.devices()

    # They stay online, and the links are not disturbed.
    mark = world.broker.messages.mark()
    stay = STAY * world.factor
    time.sleep(stay)
    for id in ids:
        expect(not world.broker.on(f"{BASE}/{id}/availability", mark), f"{id} was offline")
    for device in microbits:
        readings = [m.json()["sequence"] for m in world.broker.on(device.topic("readings"), mark)]
        expect(len(readings) > 0.93 * stay, f"{device.id} has sent {len(readings)} readings in {stay} s")
    expect_ways(world, "discovery", 3)

    # Another value, and one that falls silent.
    mark = world.broker.messages.mark()
    begin = time.monotonic()
    world.microbits.ask("beacon", number=3, data=uid(1003))
    world.broker.wait(f"{BASE}/{ids[3]}/uid", ROUND, lambda m: m.json()["instance"] == 1003, after=mark)
    print("a new value after %.1f s" % (time.monotonic() - begin))
    world.microbits.ask("beacon", number=4, data=None)
    world.broker.wait(f"{BASE}/{ids[4]}/availability", 90, lambda m: m.payload == "offline", after=mark)

    # A thousand strangers take the places that are left for them, and no others.
    mark = world.broker.messages.mark()
    world.microbits.ask("beacons", service="feaa", data=[uid(5000 + i) for i in range(FLOOD)])
    time.sleep(stay)
    devices = listed(world)
    beacons = sum(device["profile"] == "eddystone" for device in devices.values())
    expect(beacons == 500, f"{beacons} beacons are devices")
    for address, id in zip(addresses, ids):
        expect(address in devices, f"{id} was pushed out")
        if id != ids[4]:
            expect(not world.broker.on(f"{BASE}/{id}/availability", mark), f"{id} was offline in the flood")
    for device in microbits:
        expect(not world.broker.on(device.topic("availability"), mark), f"{device.id} was offline in the flood")
        device.wait_readings(1, ANSWER)


@scenario(debians=(13,))
def thirty_beacons_by_monitors(world):
    """With its experimental features bluetoothd reports each advertisement, 150 in a minute."""
    world.bluetoothd_options = ["--experimental"]
    _, ids = start_beacons(world)
    world.bluetoothd.wait_line("Activate() on Adv Monitor")
    time.sleep(60)
    expect_ways(world, "advertisement monitors", 60)

    def expect_value(value):
        world.microbits.ask("beacon", number=3, data=uid(value))
        world.broker.wait(f"{BASE}/{ids[3]}/uid", 5, lambda m: m.json()["instance"] == value)

    expect_value(1003)
    world.set_powered(False)
    mark = world.bluetoothd.output.mark()
    time.sleep(1)
    world.set_powered(True)
    world.bluetoothd.output.wait(lambda line: "Activate() on Adv Monitor" in line, ANSWER, "a monitor", mark)
    time.sleep(20)
    expect_value(1004)
    world.restart_bluetoothd()
    world.bluetoothd.wait_line("Activate() on Adv Monitor")
    time.sleep(60)
    expect_value(1005)
    expect_ways(world, "advertisement monitors", 30)
    for device in world.devices():
        device.wait_readings(1, ANSWER)


PRESSES = 50


@scenario(debians=ALL)
def presses_after_silence(world):
    """A button, one that does not count its frames, and a sensor, each heard for 1.5 s every 40 s: bluetoothd has removed
    their objects by then. What it reports is told once, also when it starts anew, or another program discovers."""
    world.start(microbits=0)
    addresses = world.microbits.ask("beacons", service="fcd2", data=["44"] * 3)["addresses"]
    for number in range(3):
        world.microbits.ask("beacon", number=number, data=None)
    ids = [address.replace(":", "").lower() for address in addresses]
    signals = Process("signals", ["dbus-monitor", "--system", "type='signal',sender='org.bluez'"])
    signals.wait_line("NameLost")
    world.start_gateway(
        [{"match": {"identifier": address}, "profile": "bthome"} for address in addresses],
        profiles_directory=SHIPPED.removeprefix("/host"),
    )
    world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/state", CONNECT, lambda m: m.payload == "online")
    time.sleep(5)

    reported, scanner = [0, 0, 0], None
    for press in range(PRESSES):
        if press == 20:
            world.restart_bluetoothd()
            time.sleep(ROUND)
        if press == 30:
            scanner = Process("scanner", ["bluetoothctl", "scan", "le"], stdin=subprocess.PIPE)
        if press == 40:
            scanner.kill(signal.SIGKILL)
        begin = signals.output.mark()
        frames = ["4400%02x3a01" % press, "443a01", "4402ca09"]
        for number, frame in enumerate(frames):
            world.microbits.ask("beacon", number=number, data=frame)
        time.sleep(1.5)
        for number in range(3):
            world.microbits.ask("beacon", number=number, data=None)
        time.sleep(38.5)
        lines = signals.output.since(begin)
        for number, frame in enumerate(frames):
            bytes = " ".join(frame[i : i + 2] for i in range(0, len(frame), 2))
            reported[number] += any(bytes in line for line in lines)
    told = [
        len(world.broker.on(f"{BASE}/{ids[0]}/button")),
        len(world.broker.on(f"{BASE}/{ids[1]}/button")),
        sum(m.json()["property"] == "temperature" for m in world.broker.on(f"{BASE}/{ids[2]}/readings")),
    ]
    print(f"of {PRESSES} each: bluetoothd has reported {reported}, the gateway told {told}")
    expect(told == reported, "not what bluetoothd has reported")
    expect(min(reported) > PRESSES * 0.8, "bluetoothd has reported few")
