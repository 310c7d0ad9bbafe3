"""What the pages of the devices show."""

from house import GATEWAY_AREA, GATEWAY_ID, is_known, is_number
from journal import expect
from scenarios.common import scenario

MICROBIT = {
    "Temperature": ("sensor", "temperature", "°C", None),
    "Temperature offset": ("number", None, "°C", "config"),
    "Measuring interval": ("number", "duration", "ms", "config"),
    "Button A": ("event", "button", None, None),
    "Button B": ("event", "button", None, None),
    "LED text": None,  # a text, and a target for notifications
    "UART": ("notify", None, None, None),
    "Connectivity": ("binary_sensor", "connectivity", None, "diagnostic"),
    "Signal strength": ("sensor", "signal_strength", "dBm", "diagnostic"),
    "Firmware": ("sensor", None, None, "diagnostic"),
    "Model": ("sensor", None, None, "diagnostic"),
    "Enabled": ("switch", None, None, "config"),
    "Identify": ("button", "identify", None, "diagnostic"),
    "Reconnect": ("button", "restart", None, "diagnostic"),
}
GATEWAY = {
    "State": ("binary_sensor", "connectivity", None, "diagnostic"),
    "Broker connected since": ("sensor", "timestamp", None, "diagnostic"),
    "Broker connections": ("sensor", None, None, "diagnostic"),
    "Adapter": ("sensor", "enum", None, "diagnostic"),
    "Micro:bits known": ("sensor", None, None, None),
    "Micro:bits online": ("sensor", None, None, None),
    "Pairing wanted": ("sensor", None, None, "diagnostic"),
    "Malformed": ("sensor", None, None, "diagnostic"),
    "Commands": ("sensor", None, None, "diagnostic"),
    "Permit join": ("switch", None, None, None),
    "Scan": ("button", None, None, "diagnostic"),
    "Restart adapter": ("button", "restart", None, "diagnostic"),
}
"""Domain, device class, unit and category of each entity."""
STATELESS = ("Button A", "Button B", "LED text", "UART")
DISABLED = {"Readings", "Sent", "Queued"}
"""Of the gateway, until a user enables them."""


def expect_entities(page, entities, wanted):
    missing = wanted.keys() - entities.keys()
    expect(not missing, f"{page} lacks {missing}, and has {entities.keys()}")
    for name, description in wanted.items():
        if description is None:
            continue
        domain, device_class, unit, category = description
        entity = entities[name]
        attributes = entity["state"]["attributes"]
        found = (
            entity["entity_id"].split(".")[0],
            attributes.get("device_class"),
            attributes.get("unit_of_measurement"),
            entity["entity_category"],
        )
        expect(found == (domain, device_class, unit, category), f"{name} of {page} is {found}")
        # Home Assistant puts the device's name before the entity's name.
        expect(attributes["friendly_name"].endswith(f" {name}"), f"{name} of {page} is called {attributes}")


def expect_states(page, entities, but=()):
    """All entities that are enabled have a state, except buttons, which show when they were pressed."""
    for name, entity in entities.items():
        if name not in but and not entity["disabled_by"] and not entity["entity_id"].startswith("button."):
            expect(is_known(entity["state"]["state"]), f"{name} of {page} is {entity['state']['state']}")


@scenario()
def page_of_a_microbit(house):
    for room in house.rooms:
        room.until("Measuring interval", is_number)
        device, entities = room.device, room.entities
        expect_entities(room.name, entities, MICROBIT)
        expect(entities.keys() == MICROBIT.keys(), f"{room.name} has {entities.keys()}")
        expect_states(room.name, entities, STATELESS)
        expect(device["manufacturer"] and device["model"], f"no maker or model: {device}")
        expect(["bluetooth", room.address] in device["connections"], f"{room.name}: {device['connections']}")
        area = house.home_assistant.areas().get(device["area_id"])
        expect(area == room.area, f"{room.name} is in the area {area}, not in {room.area}")


@scenario()
def range_of_the_period(house):
    attributes = house.rooms[0].entity("Measuring interval")["state"]["attributes"]
    found = tuple(attributes[key] for key in ("min", "max", "step", "mode"))
    expect(found == (20, 65535, 1, "box"), f"the period goes {found}")


@scenario()
def page_of_the_gateway(house):
    house.gateway_until("Micro:bits online", "3")
    device, entities = house.gateway_device, house.gateway_entities
    expect_entities(f"gateway {GATEWAY_ID}", entities, GATEWAY)
    expect_states("the gateway", entities)
    disabled = {name for name, entity in entities.items() if entity["disabled_by"]}
    expect(disabled == DISABLED, f"of the gateway, {disabled} are disabled")
    area = house.home_assistant.areas().get(device["area_id"])
    expect(area == GATEWAY_AREA, f"the gateway is in the area {area}")
    for name, wanted in (("State", "on"), ("Adapter", "on"), ("Micro:bits known", "3")):
        found = entities[name]["state"]["state"]
        expect(found == wanted, f"{name} of the gateway is {found}")


@scenario()
def microbits_are_via_the_gateway(house):
    for room in house.rooms:
        room.until_via(lambda: house.gateway_device)
