"""Prints frames of BTHome, version 2, with what bthome-ble reads in them, in the names of the profile `bthome`."""

import json
import logging
import random
from datetime import datetime
from importlib.metadata import version

from bthome_ble.const import MEAS_TYPES
from bthome_ble.parser import BTHomeBluetoothDeviceData
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from habluetooth import BluetoothServiceInfoBleak

logging.disable(logging.CRITICAL)

MADE = "2026-11-26"
ADDRESS = "54:48:E6:8F:80:A5"
KEY = bytes.fromhex("231d39c1d7cc1ab1aee224cd096db932")
SERVICE = "0000fcd2-0000-1000-8000-00805f9b34fb"

# Where bthome-ble has another name; by the unit where two quantities share one.
NAMES = {
    "carbon_dioxide": "co2", "pm25": "pm2_5", "uv_index": "uv", "volatile_organic_compounds": "tvoc",
    "volume_flow_rate": "volume_flow",
}
UNITS = {("mass", "lb"): "mass_lb", ("distance", "mm"): "distance_mm", ("volume", "mL"): "volume_ml"}
FLAGS = {
    "power": "powered", "battery": "battery_low", "battery_charging": "charging", "connectivity": "connected",
    "gas": "gas_detected", "moisture": "wet",
}


def named(key, names, unit=None):
    """`temperature_1` is the first of several."""
    base, _, number = key.rpartition("_")
    if not (base and number.isdigit()):
        base, number = key, "1"
    name = UNITS.get((base, unit)) or names.get(base, base)
    return name if number == "1" else f"{name}_{number}"


def read(data, key=None):
    info = BluetoothServiceInfoBleak(
        name="x", address=ADDRESS, rssi=-60, manufacturer_data={}, service_data={SERVICE: data},
        service_uuids=[SERVICE], source="", device=None, advertisement=None, connectable=False, time=0.0,
        tx_power=None)
    update = BTHomeBluetoothDeviceData(bindkey=key).update(info)
    values = {}
    units = {k: d.native_unit_of_measurement for k, d in update.entity_descriptions.items()}
    for k, value in update.entity_values.items():
        if k.key in ("signal_strength", "packet_id"):
            continue
        native = value.native_value
        if isinstance(native, datetime):
            native = native.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        values[named(k.key, NAMES, units.get(k))] = native
    for k, value in update.binary_entity_values.items():
        values[named(k.key, FLAGS)] = value.native_value
    for k, event in update.events.items():
        more = dict(event.event_properties or {})
        if "args" in more:
            more["arguments"] = more.pop("args")
        values[named(k.key, {})] = {"event_type": event.event_type, **more}
    return values


def encrypted(objects, counter):
    count = counter.to_bytes(4, "little")
    nonce = bytes.fromhex(ADDRESS.replace(":", "")) + b"\xd2\xfc\x41" + count
    sealed = AESCCM(KEY, tag_length=4).encrypt(nonce, objects, None)
    return b"\x41" + sealed[:-4] + count + sealed[-4:]


def values_of(identifier):
    """Objects of an id: the limits of its bytes, and some in between."""
    kind = MEAS_TYPES[identifier]
    if kind.data_format in ("string", "raw"):
        return [bytes([identifier, len(text)]) + text for text in (b"", b"a", "grün".encode(), b"\xff\xfe", b"Hello")]
    if kind.data_format == "command":
        return [bytes([identifier, len(more) | high, word]) + more
                for word in range(6) for more in (b"", b"\x07", b"\x01\x02") for high in (0, 0xA0)]
    count = kind.data_length
    if identifier in (0x3A, 0x3C):
        words = [*range(8), 0x80, 0x81, 0xFE, 0xFF]
        return [bytes([identifier, word, 3][: count + 1]) for word in words]
    top = 1 << 8 * count
    numbers = {0, 1, 2, 99, 100, 101, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1, *chance.choices(range(top), k=3)}
    return [bytes([identifier]) + n.to_bytes(count, "little") for n in sorted(numbers) if n < top]


chance = random.Random(20261126)


def frames():
    everything = {i: values_of(i) for i in sorted(MEAS_TYPES)}
    for objects in everything.values():
        for value in objects:
            yield b"\x40" + value, None
    some = [value for objects in everything.values() for value in objects]
    for number in range(150):
        chosen = chance.choices(some, k=chance.randint(2, 5))
        if number % 2:
            chosen.sort()
        head = b"\x44" if number % 3 == 0 else b"\x42" + bytes(6) if number % 7 == 0 else b"\x40"
        yield head + b"".join(chosen), None
    # One kind often, in its sizes.
    for kind in ([0x02, 0x45, 0x57, 0x58], [0x3A], [0x3C], [0x09, 0x3D, 0x3E, 0x59], [0x2D], [0x53]):
        for _ in range(4):
            yield b"\x40" + b"".join(chance.choice(everything[i]) for i in chance.choices(kind, k=6)), None
    whole = b"\x40" + bytes.fromhex("000902ca0903bf13" "3a01" "3b0103ff" "5303616263" "2d01" "f1010203040161")
    for count in range(len(whole) + 1):
        yield whole[:count], None
    for unknown in set(range(256)) - set(MEAS_TYPES):
        if unknown % 8 == 0:
            yield b"\x40\x01\x61" + bytes([unknown]) + b"\x02\xca\x09", None
    for _ in range(150):
        yield b"\x40" + chance.randbytes(chance.randint(1, 24)), None
    for counter in (1, 255, 1122867, 0xFFFFFFFF):
        yield encrypted(bytes.fromhex("02ca0903bf13"), counter), KEY
    yield encrypted(bytes.fromhex("02ca0903bf13"), 7)[:-1] + b"\x00", KEY
    yield b"\x40\x01\x61", KEY
    yield encrypted(bytes.fromhex("0161"), 9), None
    yield b"\x20\x01\x61", None
    yield b"\x61\x01\x61", None


print("{")
print(f'"made": "{MADE}", "bthome-ble": "{version("bthome-ble")}", "address": "{ADDRESS}", "key": "{KEY.hex()}",')
print('"frames": [')
lines = []
for data, key in frames():
    found = read(data, key) if data else {}
    lines.append(json.dumps({"hex": data.hex(), "encrypted": key is not None, "values": found}, ensure_ascii=False))
print(",\n".join(dict.fromkeys(lines)))
print("]}")
