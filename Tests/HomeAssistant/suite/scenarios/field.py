"""What programs and devices really send."""

import json

from beacons import ID, Beacons
from house import BASE, CONNECT, MOMENT, is_known
from journal import expect
from scenarios.availability import ids
from scenarios.common import scenario
from scenarios.pages import MICROBIT, expect_entities
from scenarios.programs import send
from scenarios.removal import GATEWAY_REMOVED, gone

KEY = "231d39c1d7cc1ab1aee224cd096db932"
HEARD = {
    "Connectivity": ("binary_sensor", "connectivity", None, "diagnostic"),
    "Signal strength": ("sensor", "signal_strength", "dBm", "diagnostic"),
    "Firmware": ("sensor", None, None, "diagnostic"),
    "Model": ("sensor", None, None, "diagnostic"),
    "Enabled": ("switch", None, None, "config"),
}
"""Of every device that is only heard."""
BATTERY = {"Battery": ("sensor", "battery", "%", "diagnostic")}
BUTTONS = {name: ("event", "button", None, None) for name in ("Button", "Button 2", "Button 3", "Button 4")}
CLIMATE = {
    "Temperature": ("sensor", "temperature", "°C", None),
    "Temperature offset": ("number", None, "°C", "config"),
    "Humidity": ("sensor", "humidity", "%", None),
}
DOOR = {
    "Opening": ("binary_sensor", "opening", None, None),
    "Window": ("binary_sensor", "window", None, None),
}


LENGTHS = {
    1: (0x01, 0x09, *range(0x0F, 0x12), *range(0x15, 0x2E), 0x46, 0x60, 0x64, 0x65),
    2: (
        *(0x02, 0x03, 0x06, 0x07, 0x08, 0x0C, 0x0D, 0x0E, 0x12, 0x13, 0x14, 0x3F, 0x40, 0x41, 0x43, 0x44, 0x47, 0x48),
        *(0x49, 0x51, 0x52, 0x56, 0x5E, 0x5F, 0x61),
    ),
    3: (0x04, 0x05, 0x0A, 0x0B, 0x42, 0x4B),
    4: (0x4F, 0x50, 0x55),
}
"""The ids of BTHome's objects, one for each quantity, by their length in bytes."""
OBJECTS = [f"{id:02x}01" + "00" * (length - 1) for length, ids in LENGTHS.items() for id in ids]
OBJECTS += ["53026f6b", "5401ff", "3a01", "3b0001", "3c0103"]
"""All of 1, a text, bytes, a button, a command and a dimmer."""
OF_ONE = 12
"""So many of them are sent by one device."""


@scenario()
def values_with_korean_names(house):
    """Ids and topics are made of them."""
    room = house.rooms[1]
    for line in ("온도:24", "온도:25", "습도_%:40", "습도_%:41", "문:열림", "문:닫힘"):
        send(house, room, line)
    room.until("온도", "25")
    room.until("습도", "41")
    room.until("문", "닫힘")
    expect_entities(room.name, room.entities, {
        "온도": ("sensor", None, None, None), "습도": ("sensor", None, "%", None), "문": ("sensor", None, None, None),
    })
    expect(room.topic("values/온도") in house.broker.retained(), "the value is not retained")
    # So does its device.
    before, entities = room.id, ids(room.entities)
    house.request("device/rename", id=before, to="온실")
    try:
        room.id = "온실"
        send(house, room, "온도:26")
        room.until("온도", "26")
        number = room.entity("Measuring interval")["entity_id"]
        for interval in (1200, 1000):
            house.home_assistant.call("number", "set_value", number, value=interval)
            room.until("Measuring interval", str(interval))
        expect(ids(room.entities) == entities, f"its entities are {ids(room.entities)}")
    finally:
        room.id = before
        house.request("device/rename", id="온실", to=before)
    room.until_online()
    for name in ("온도", "습도", "문"):
        house.request("value/remove", id=room.id, property=name)
    house.home_assistant.until("the values are gone", lambda: room.entities.keys() == MICROBIT.keys(), MOMENT)


@scenario(accepts=GATEWAY_REMOVED)
def remote_thermometer_and_door(house):
    """All that advertises BTHome: events of each button, encrypted values, an opening and a window."""
    beacons = Beacons(
        house,
        ("Remote", "E6:7A:00:00:00:01", None, "0164" + "3a00" * 4),
        ("Thermometer", "54:48:E6:8F:80:A5", KEY, "0161" + "02ca09" + "03bf13"),
        ("Entrance", "E6:7A:00:00:00:03", None, "0163" + "1100" + "2d00"),
    )
    home_assistant = house.home_assistant
    remote, thermometer, entrance = beacons.all
    try:
        for beacon, own in ((remote, BUTTONS), (thermometer, CLIMATE), (entrance, DOOR)):
            wanted = HEARD | BATTERY | own
            home_assistant.until(
                f"{beacon.name} has {sorted(wanted)}", lambda: beacon.entities.keys() == wanted.keys(), CONNECT)
            beacon.until("Connectivity", "on", CONNECT)
            expect_entities(beacon.name, beacon.entities, wanted)

        # Each button, by one frame with all of them, and what automations start with.
        for index, name in enumerate(BUTTONS):
            before = beacon_event(remote, name)
            objects = "".join("3a01" if index == other else "3a00" for other in range(4))
            remote.advertise("0164" + objects, isTrigger=True)
            home_assistant.until(f"{name} is pressed", lambda: beacon_event(remote, name) != before, MOMENT)
            expect(beacon_event(remote, name)[1] == "press", f"{name}: {beacon_event(remote, name)}")
        before = {name: beacon_event(remote, name) for name in BUTTONS}
        remote.advertise("0164" + "3a023a003a043a00", isTrigger=True)
        home_assistant.until("two are pressed", lambda: [
            beacon_event(remote, name)[1] for name in BUTTONS] == ["double_press", "press", "long_press", "press"], MOMENT)
        expect(all(beacon_event(remote, name) == before[name] for name in ("Button 2", "Button 4")), "others are too")
        kinds = {(trigger["type"], trigger.get("subtype")) for trigger in home_assistant.triggers(remote.device)}
        expect(("double_press", "Button 4") in kinds, f"{kinds}")

        thermometer.until("Temperature", "25.06")
        thermometer.until("Humidity", "50.55")
        thermometer.advertise("0160" + "02cf09" + "03c013")
        thermometer.until("Temperature", "25.11")
        thermometer.until("Humidity", "50.56")
        thermometer.until("Battery", "96")

        for opening, window in (("off", "off"), ("on", "off"), ("on", "on"), ("off", "off")):
            entrance.advertise("0163" + f"11{opening == 'on':02x}" + f"2d{window == 'on':02x}")
            entrance.until("Opening", opening)
            entrance.until("Window", window)

        for beacon in beacons.all:
            house.request("device/remove", ID, id=beacon.id)
            gone(house, beacon)
            begin = f"{BASE}/{beacon.id}/"
            kept = [topic for topic in house.broker.retained() if topic.startswith(begin)]
            expect(not kept, f"the broker still keeps {kept}")
        beacons.configure(discovery=False)
        house.request("reload", ID)
        home_assistant.until("its gateway is gone", lambda: beacons.device is None, MOMENT)
    finally:
        beacons.leave()


@scenario(accepts=GATEWAY_REMOVED)
def entities_with_the_name_of_their_device(house):
    """Home Assistant puts the device's name before theirs: it is there once."""
    beacons = Beacons(house, ("Button", "E6:7A:00:00:00:04", None, "0164" + "3a00" * 2))
    (button,) = beacons.all
    wanted = {"Button", "Button 2", "Button Battery"} | {f"Button {name}" for name in HEARD}

    def shown():
        states = house.home_assistant.socket.ask("get_states")
        own = {entity["entity_id"] for entity in house.home_assistant.list_entities(button.device)}
        return {state["attributes"]["friendly_name"] for state in states if state["entity_id"] in own}

    try:
        house.home_assistant.until("the button is there", lambda: button.device and shown() == wanted, CONNECT)
        house.request("device/remove", ID, id=button.id)
        gone(house, button)
        beacons.configure(discovery=False)
        house.request("reload", ID)
        house.home_assistant.until("its gateway is gone", lambda: beacons.device is None, MOMENT)
    finally:
        beacons.leave()


@scenario(accepts=GATEWAY_REMOVED)
def every_object_of_bthome(house):
    """Home Assistant accepts all entities that are announced, and shows the values."""
    chunks = [OBJECTS[begin:begin + OF_ONE] for begin in range(0, len(OBJECTS), OF_ONE)]
    beacons = Beacons(house, *(
        (f"Sensor {index}", f"E6:7A:00:00:01:0{index}", None, "".join(objects)) for index, objects in enumerate(chunks)
    ))

    def announced(beacon):
        """The unique ids of the entities, but for what is not one."""
        document = json.loads(house.broker.retained().get(beacon.discovery_topic, "{}"))
        return {
            component["uniq_id"] for component in document.get("cmps", {}).values()
            if "uniq_id" in component and component["p"] != "device_automation"
        }

    def registered(beacon):
        device = beacon.device
        return {entity["unique_id"] for entity in house.home_assistant.list_entities(device)} if device else set()

    try:
        for beacon, objects in zip(beacons.all, chunks, strict=True):
            house.home_assistant.until(
                f"{beacon.name} has all of its entities",
                lambda: len(announced(beacon)) >= len(objects) + len(HEARD)
                and registered(beacon) == announced(beacon), CONNECT)
            for name, entity in beacon.entities.items():
                if entity["entity_id"].split(".")[0] != "event" and name not in ("Firmware", "Model"):
                    beacon.until(name, is_known)
            house.request("device/remove", ID, id=beacon.id)
            gone(house, beacon)
        beacons.configure(discovery=False)
        house.request("reload", ID)
        house.home_assistant.until("its gateway is gone", lambda: beacons.device is None, MOMENT)
    finally:
        beacons.leave()


def beacon_event(beacon, name):
    """When the last event of a button was, and its type."""
    state = beacon.entity(name)["state"]
    return state["state"], state["attributes"].get("event_type")
