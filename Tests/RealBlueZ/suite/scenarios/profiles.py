"""Peripherals other than micro:bits, bridged by a profile in JSON: those of deploy/profiles, and one that only this
file has."""

import json
import os

from journal import expect
from scenarios.common import ALL, ANSWER, CONNECT, RETURN, scenario
from scenarios.microbit_services import expect_result, wait_event, wait_value
from scenarios.services import BOTH, command
from world import OUT

SHIPPED = os.path.abspath(f"{os.path.dirname(__file__)}/../../../../deploy/profiles")
"""The scenario's own view of the folder; the gateway has another (see World.gateway_command)."""
UART = "6e40000{}-b5a3-f393-e0a9-e50e24dcca9e"
PLAYER = "6a2b000{}-3e5c-4d7a-9f10-5b8c2d4e6f01"
SCRATCH = "5261da01-fa7e-42ab-850b-7c80220097cc"
XIAOMI = "ebe0cc{}-7a0a-4b0c-8a1a-6ff2997da3a6"


def peripheral(name, service, *characteristics, later=False, advertised=True):
    """`characteristics`: UUID, access, and optionally initial value or length of a write."""
    described = [
        {"uuid": uuid, "access": access.split()} | (more[0] if more else {})
        for uuid, access, *more in characteristics
    ]
    service = {"uuid": service, "later": later, "characteristics": described}
    return {"name": name, "services": [service]} | ({"advertises": [service["uuid"]]} if advertised else {})


COUNTER = peripheral("Counter", "1111", ("2222", "write", {"length": 1}))
KEYS = ("ffe1", "notify")
HUMIDITY = "f000aa2{}-0451-4000-b000-000000000000"


def sensortag(name):
    """Its humidity service tells it from other peripherals with the service of the keys."""
    tag = peripheral(name, "ffe0", KEYS)
    tag["services"] += peripheral("", HUMIDITY.format(0), (HUMIDITY.format(1), "notify"))["services"]
    return tag


PERIPHERALS = {
    "battery": peripheral("Battery", "180f", ("2a19", "read notify", {"value": "64"})),
    "counter": COUNTER,
    "current_time": peripheral("Clock", "1805", ("2a2b", "read notify", {"value": "ea070b160a1e0f070000"})),
    "cycling_speed_and_cadence": peripheral("Bicycle", "1816", ("2a5b", "notify")),
    "environmental_sensing": peripheral(
        "Sensor",
        "181a",
        ("2a6e", "read notify", {"value": "9808"}),
        ("2a6f", "read notify", {"value": "c611"}),
        ("2a6d", "read notify", {"value": "02760f00"}),
    ),
    "health_thermometer": peripheral("Thermometer", "1809", ("2a1c", "indicate")),
    "heart_rate": peripheral("Heart", "180d", ("2a37", "notify"), ("2a38", "read", {"value": "01"})),
    "mi_flora": peripheral(
        "Flower care",
        "1204",
        ("1a01", "read", {"value": "f90000fa0000000d3c00023c00fb349b"}),
        ("1a02", "read", {"value": "6413332e312e38"}),
        ("1a00", "write", {"length": 2}),
    ),
    "nordic_uart": peripheral(
        "NUS", UART.format(1), (UART.format(3), "notify"), (UART.format(2), "write command")
    ),
    "scratch_microbit": peripheral("Scratch", "f005", (SCRATCH, "read notify", {"value": "00" * 20})),
    "sensortag_keys": sensortag("SensorTag 1"),
    "sound_player": peripheral("Player", PLAYER.format(1), (PLAYER.format(2), "write", {"length": 1})),
    "xiaomi_lywsd03mmc": peripheral(
        "LYWSD03MMC",
        XIAOMI.format("b0"),
        (XIAOMI.format("c1"), "read notify", {"value": "39082fab0b"}),
        advertised=False,
    ),
}

READ = {
    ("battery", "battery"): 100,
    ("current_time", "time"): {
        "year": 2026, "month": 11, "day": 22, "hours": 10, "minutes": 30, "seconds": 15, "weekday": 7
    },  # fmt: skip
    ("environmental_sensing", "temperature"): 22,
    ("environmental_sensing", "humidity"): 45.5,
    ("environmental_sensing", "pressure"): 101325,
    ("mi_flora", "plant"): {"temperature": 24.9, "light": 250, "moisture": 13, "conductivity": 60},
    ("mi_flora", "battery"): {"level": 100},
    ("xiaomi_lywsd03mmc", "climate"): {"temperature": 21.05, "humidity": 47, "battery": 2.987},
}
"""What is published without a notification."""

NOTIFIED = [
    ("battery", "battery", "2a19", "00", 0),
    ("current_time", "time", "2a2b", "ea070c1f173b3b040001", {
        "year": 2026, "month": 12, "day": 31, "hours": 23, "minutes": 59, "seconds": 59, "weekday": 4
    }),
    ("cycling_speed_and_cadence", "measurement", "2a5b", "0370110100000cfa000006", {
        "wheel_revolutions": 70000, "wheel_time": 3, "crank_revolutions": 250, "crank_time": 1.5
    }),
    ("cycling_speed_and_cadence", "measurement", "2a5b", "02fb000008", {
        "crank_revolutions": 251, "crank_time": 2
    }),
    ("environmental_sensing", "temperature", "2a6e", "0cfe", -5),
    ("environmental_sensing", "humidity", "2a6f", "1027", 100),
    ("environmental_sensing", "pressure", "2a6d", "03760f00", 101325.1),
    ("health_thermometer", "temperature", "2a1c", "053c2600fe02", {"fahrenheit": 97.88, "site": "body"}),
    ("health_thermometer", "temperature", "2a1c", "006f0100ff", {"celsius": 36.7}),
    ("heart_rate", "heart_rate", "2a37", "192c01e8030004f003", {
        "bpm": 300, "energy": 1000, "rr": [1, 0.984375]
    }),
    ("heart_rate", "heart_rate", "2a37", "0048", {"bpm": 72}),
    ("scratch_microbit", "state", SCRATCH, "ff9c00fa0100000001010000000000000000" + "0000", {
        "tilt_x": -10, "tilt_y": 25, "button_a": True, "button_b": False, "pin_0": False, "pin_1": False,
        "pin_2": True, "gesture": 1
    }),
    ("xiaomi_lywsd03mmc", "climate", XIAOMI.format("c1"), "0cfe64b80b", {
        "temperature": -5, "humidity": 100, "battery": 3
    }),
]  # fmt: skip
"""Profile, property, characteristic, its bytes, the value that is published."""

WRITTEN = [
    ("counter", "add", "5", "2222", ["05"]),
    ("sound_player", "play", "third", PLAYER.format(2), ["03"]),
    ("nordic_uart", "send", "turn the lamp on now", UART.format(2), [b"turn the lamp on now".hex(), "0a"]),
    ("nordic_uart", "send", "a text of two writes.", UART.format(2), [b"a text of two writes".hex(), "2e0a"]),
]
"""Profile, property, command, characteristic, the bytes of each write."""


def start(world, peripherals, entries, **more):
    """The gateway with these described peripherals, one entry and id for each."""
    with open(f"{OUT}/peripherals.json", "w") as file:
        json.dump(peripherals, file, indent=2)
    world.start(microbits=0, options=["--describe", f"{OUT}/peripherals.json"])
    world.start_gateway(entries, bluetooth={"links": len(entries)}, **more)
    return world.others([entry["id"] for entry in entries])


def send(world, device, characteristic, value):
    world.microbits.ask("call", device.index, method="set_value", arguments=[characteristic, value])


@scenario()
def every_shipped_profile(world):
    names = {file.removesuffix(".json") for file in os.listdir(SHIPPED)} - {"atc_thermometer", "eddystone", "ibeacon", "pvvx_thermometer", "ruuvitag"}
    expect(names == set(PERIPHERALS), f"no peripheral for {names ^ set(PERIPHERALS)}")
    entries = [
        {"match": {"service": d["advertises"][0]} if "advertises" in d else {"name": d["name"]}}
        | {"profile": name, "id": name}
        for name, d in PERIPHERALS.items()
    ]
    devices = start(world, list(PERIPHERALS.values()), entries, profiles_directory=SHIPPED.removeprefix("/host"))
    devices = {device.id: device for device in devices}
    for device in devices.values():
        device.wait_availability("online", len(devices) * CONNECT)

    for (id, name), value in READ.items():
        wait_value(devices[id], name, value)
    wait = devices["heart_rate"].wait
    expect(wait("body_sensor_location", ANSWER).payload == "chest", "another location")
    for id, name, characteristic, value, published in NOTIFIED:
        mark = world.broker.messages.mark()
        send(world, devices[id], characteristic, value)
        wait_value(devices[id], name, published, mark)
    for value, word in (("01", "right"), ("03", "both"), ("00", "none")):
        send(world, devices["sensortag_keys"], "ffe1", value)
        devices["sensortag_keys"].wait("keys", ANSWER, lambda m: m.json()["event_type"] == word, what=word)
    for piece in (b"on", b"e\ntw", b"o\n"):
        send(world, devices["nordic_uart"], UART.format(3), piece.hex())
    for line in ("one", "two"):
        wait_event(devices["nordic_uart"], "received", line)
    for id, name, payload, characteristic, writes in WRITTEN:
        before = world.microbits.ask("state", devices[id].index)["writes"][characteristic]
        command(world, devices[id], name, payload, "accepted")
        after = world.microbits.ask("state", devices[id].index)["writes"][characteristic]
        expect(after == before + writes, f"{id}: {after}")
    command(world, devices["sound_player"], "play", "fourth", "rejected")
    command(world, devices["counter"], "add", "256", "rejected")


@scenario(debians=ALL)
def sensortags_counter_and_player(world):
    """Several peripherals of one kind; a write that is refused for its length; a service that appears later."""
    # One byte more than the counter accepts.
    wide = {"service": "1111", "characteristic": "2222", "access": ["write"], "kind": "event", "type": "uint16"}
    peripherals = [
        sensortag("SensorTag 1"),
        sensortag("SensorTag 2"),
        COUNTER,
        peripheral("Player", PLAYER.format(1), (PLAYER.format(2), "write", {"length": 1}), later=True),
    ]
    entries = [
        {"match": {"name_contains": "Tag 1"}, "profile": "sensortag_keys", "id": "left"},
        {"match": {"name_contains": "Tag 2"}, "profile": "sensortag_keys", "id": "right"},
        {"match": {"service": "1111"}, "profile": "wide", "id": "counter"},
        {"match": {"service": PLAYER.format(1)}, "profile": "sound_player", "id": "player"},
    ]
    left, right, counter, player = start(
        world, peripherals, entries, profiles_directory=SHIPPED.removeprefix("/host"), profiles={"wide": {"properties": {"add": wide}}}
    )
    for device in (left, right, counter):
        device.wait_availability("online", 4 * CONNECT)
    for device, value, word in ((left, "02", "left"), (right, "01", "right"), (left, "00", "none")):
        send(world, device, "ffe1", value)
        device.wait("keys", ANSWER, lambda m: m.json()["event_type"] == word, what=word)
    expect(len(world.broker.on(right.topic("keys"))) == 1, "a key of the other one")

    failed = command(world, counter, "add", "5", "failed")
    expect("Invalid Length" in failed["reason"], f"{failed}")
    expect(world.microbits.ask("state", counter.index)["writes"] == {"2222": []}, "the counter took it")

    lacking = ", which the profile sound_player requires"
    world.gateway.wait_line(lacking, 4 * CONNECT)
    world.microbits.ask("call", player.index, method="offer", arguments=[])
    player.wait_availability("online", 3 * RETURN)
    command(world, player, "play", "first", "accepted")


STATION = "7d0e000{}-52c1-4e4b-8d3a-0c6b3e1f9a20"
WEATHER = {
    "manufacturer": "Rig",
    "model": "Meteo 7",
    "requires": [STATION.format(1)],
    "properties": {
        "weather": {
            "service": STATION.format(1), "characteristic": STATION.format(2), "access": ["read", "notify"],
            "fields": [
                {"name": "flags", "type": "uint8", "hidden": True},
                {"name": "temperature", "type": "int16", "scale": 0.01},
                {"name": "wind", "type": "uint16", "scale": 0.1, "if": "flags.0"},
                {"name": "rain", "type": "uint8", "if": "flags.1"},
                {"name": "battery", "type": "uint8", "values": {"0": "low", "1": "good", "2": "charging"}},
            ],
        },
        "interval": {
            "service": STATION.format(1), "characteristic": STATION.format(3), "access": ["read", "write"],
            "type": "uint16", "unit": "s", "range": [10, 3600], "initial": 20,
        },
        "gust": {
            "service": STATION.format(1), "characteristic": STATION.format(4), "access": ["notify"],
            "kind": "event", "type": "uint16", "scale": 0.1, "unit": "m/s",
        },
    },
}  # fmt: skip


@scenario(debians=BOTH)
def weather_station(world):
    """A peripheral that the gateway knows only from its configuration."""
    world.start(microbits=0, options=["--weather"])
    entry = {"match": {"name": "Meteo 7"}, "profile": "meteo", "id": "roof"}
    world.start_gateway([entry], profiles={"meteo": WEATHER})
    [roof] = world.others(["roof"])
    roof.wait_availability("online", CONNECT)
    wait_value(roof, "weather", {"temperature": -1.25, "battery": "good"})
    wait_value(roof, "interval", 20)
    world.microbits.until(0, ANSWER, interval=20)

    def weather(*values):
        world.microbits.ask("call", method="set_weather", arguments=values)

    weather(21.5, 3.4, 12, 2)
    wait_value(roof, "weather", {"temperature": 21.5, "wind": 3.4, "rain": 12, "battery": "charging"}, within=30)
    weather(-20.05, None, 0, 0)
    wait_value(roof, "weather", {"temperature": -20.05, "rain": 0, "battery": "low"}, within=30)
    expect_result(command(world, roof, "interval", "30", "applied"), 30, 30)
    expect_result(command(world, roof, "interval", "95", "adjusted"), 95, 100)
    command(world, roof, "interval", "5", "rejected")
    world.microbits.ask("call", method="send_gust", arguments=[17.2])
    wait_event(roof, "gust", 17.2)
    world.microbits.ask("disconnect")
    world.microbits.until(0, ANSWER, connected=False)
    world.microbits.until(0, RETURN, connected=True)
