"""Of device classes, `check` takes what Home Assistant takes."""

import json
import os
import re
import subprocess

from homeassistant.components.binary_sensor import BinarySensorDeviceClass
from homeassistant.components.event import EventDeviceClass
from homeassistant.components.sensor import const as sensor
from homeassistant.components.switch import SwitchDeviceClass

from house import MOMENT
from journal import expect
from scenarios.common import scenario

STATES = {"measurement", "total_increasing"}
"""The state classes that a profile can name."""
BOOL = {"access": ["read", "write"], "write": "request", "type": "bool"}
OTHERS = {
    "binary_sensor": (BinarySensorDeviceClass, BOOL),
    "switch": (SwitchDeviceClass, BOOL),
    "event": (EventDeviceClass, {"access": ["notify"], "kind": "event", "type": "uint8", "values": {"1": "ring"}}),
}
"""The classes of each platform but sensor, and a property that may have them."""


@scenario()
def device_classes_and_units(house):
    properties, warned, taken = [], {}, []

    def add(platform, device_class, base, unit=None, state_class=None, is_taken=True):
        entity = {"platform": platform, "name": "A", "device_class": device_class}
        if state_class:
            entity["state_class"] = state_class
        number = len(properties)
        properties.append(
            {"service": "1111", "characteristic": f"{0x2222 + number:04x}", **base, "home_assistant": entity}
            | ({"unit": unit} if unit else {})
        )
        taken.append(is_taken)
        return number

    lists = {}
    for name in map(str, sensor.SensorDeviceClass):
        number = {"access": ["read"], "type": "uint8"}
        if name in sensor.NON_NUMERIC_DEVICE_CLASSES:
            add("sensor", name, {"access": ["read"], "type": "utf8"})
            continue
        units = sorted(str(unit or "") for unit in sensor.DEVICE_CLASS_UNITS.get(name, []))
        for unit in units:
            add("sensor", name, number, unit)
        if units:
            lists[add("sensor", name, number, "?", is_taken=False)] = name, {unit.replace("\u03bc", "\u00b5") for unit in units}
        for state in STATES:
            is_taken = state in sensor.DEVICE_CLASS_STATE_CLASSES.get(name, ())
            add("sensor", name, number, units[0] if units else "EUR", state, is_taken)
    for platform, (classes, base) in OTHERS.items():
        for name in map(str, classes):
            add(platform, name, base)

    path = os.path.join(house.folder, "classes.json")
    with open(path, "w") as file:
        profile = {"properties": {f"p{number}": property for number, property in enumerate(properties)}}
        json.dump({"profiles": {"x": profile}}, file)
    check = subprocess.run(
        [house.program("microbit-gateway"), "check", "--config", path], capture_output=True, text=True, timeout=MOMENT
    )
    expect(check.returncode == 0, check.stderr[:2000])
    for line in check.stderr.splitlines():
        if found := re.search(r": profiles\.x\.properties\.p(\d+)\.(.*)", line):
            warned[int(found[1])] = found[2]

    wrong = [f"{properties[number]}: {text}" for number, text in warned.items() if taken[number]]
    expect(not wrong, "\n".join(["check refuses what Home Assistant takes:", *wrong]))
    if not house.home_assistant.is_newer:
        return  # It takes less than the newest, which the gateway goes by.
    wrong = [str(properties[number]) for number in range(len(taken)) if not taken[number] and number not in warned]
    expect(not wrong, "\n".join(["check takes what Home Assistant refuses:", *wrong]))
    for number, (name, units) in lists.items():
        listed = re.search(r"\(\w+ (?:takes (.*)|has no unit)\)$", warned[number])[1] or "none"
        known = {"" if unit == "none" else unit for unit in re.split(", | or ", listed)}
        expect(known == units, f"{name}: check takes {sorted(known)}, Home Assistant {sorted(units)}")
