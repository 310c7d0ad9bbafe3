"""Micro:bits that are only heard, beside others that are connected."""

import json
import time

from journal import expect
from scenarios.common import ANSWER, BY_PREFIX, CONNECT, scenario
from scenarios.profiles import SHIPPED
from world import BASE, GATEWAY_ID

BEACONS = 30
LINKS = 7
FLOOD = 1000
ROUND = 25
"""Seconds in which each is heard: the kernel's scan reports it once in a round of 10 s."""


def uid(instance):
    return "00ec" + "%020x" % 7 + "%012x" % instance


def listed(world):
    mark = world.broker.messages.mark()
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/devices", "")
    answer = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/devices", ANSWER, after=mark)
    return {device["identifier"]: device for device in answer.json()["data"]}


@scenario(debians=(12, 13))
def thirty_beacons_and_seven_links(world):
    world.start(microbits=LINKS)
    data = [uid(i) for i in range(BEACONS)]
    addresses = world.microbits.ask("beacons", service="feaa", data=data)["addresses"]
    ids = [address.replace(":", "").lower() for address in addresses]
    named = [{"match": {"identifier": address}, "profile": "eddystone"} for address in addresses]
    anyone = {"match": {"service": "feaa"}, "profile": "eddystone"}
    profiles = SHIPPED.removeprefix("/host")
    world.start_gateway(named + [anyone] + BY_PREFIX, profiles_directory=profiles)

    microbits = world.devices()
    for device in microbits:
        device.wait_availability("online", LINKS * CONNECT)
    for i, id in enumerate(ids):
        world.broker.wait(f"{BASE}/{id}/availability", ROUND, lambda m: m.payload == "online")
        world.broker.wait(f"{BASE}/{id}/uid", ROUND, lambda m: m.json()["instance"] == i)

    # They stay online for minutes, and the links are not disturbed.
    mark = world.broker.messages.mark()
    time.sleep(300)
    for id in ids:
        expect(not world.broker.on(f"{BASE}/{id}/availability", mark), f"{id} was offline")
    for device in microbits:
        readings = [m.json()["sequence"] for m in world.broker.on(device.topic("readings"), mark)]
        expect(len(readings) > 280, f"{device.id} has sent {len(readings)} readings in 300 s")
    rates = [device["heard_per_minute"] for device in listed(world).values() if "heard_per_minute" in device]
    expect(len(rates) == BEACONS, f"{len(rates)} beacons have a rate")
    print("heard per minute:", min(rates), "to", max(rates))
    expect(min(rates) >= 3, f"heard only {min(rates)} times a minute")

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
    time.sleep(180)
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
