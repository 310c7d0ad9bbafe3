"""Removed devices leave nothing behind, and do not come back."""

from house import BASE, CONNECT, MOMENT, PREFIX
from journal import expect
from scenarios.common import scenario
from scenarios.pages import MICROBIT

DELETED_BY_USER = [
    # Home Assistant clears the topic once for each entity and trigger, and logs each superfluous one: the LED text has
    # two entities, and each button three triggers.
    (r"mqtt\.discovery\] No device components to cleanup for ble_[0-9a-f]{12},", len(MICROBIT) + 7),
]
GATEWAY_DELETED_BY_USER = [
    (r"mqtt\.discovery\] No device components to cleanup for ble_gateway_house,", 100),
]
GATEWAY_REMOVED = [
    # Home Assistant 2025.4 clears the topic once more for each entity that is disabled.
    (r"mqtt\.discovery\] No device components to cleanup for ble_gateway_[a-z]+,", 3),
]


def gone(house, room):
    def check():
        return room.device is None and not any(
            entity["unique_id"].startswith(room.object_id)
            for entity in house.home_assistant.socket.ask("config/entity_registry/list")
            if entity["platform"] == "mqtt"
        )

    house.home_assistant.until(f"{room.name} is gone", check, MOMENT)


@scenario(accepts=DELETED_BY_USER)
def device_is_deleted_by_its_user(house):
    """It stays removed, whatever happens, until it is added again; the gateway keeps publishing its values."""
    room = house.rooms[0]
    mark = house.broker.messages.mark()
    house.home_assistant.delete(room.device)
    gone(house, room)
    house.broker.wait(room.discovery_topic, MOMENT, lambda message: not message.payload, mark)

    mark = house.broker.messages.mark()
    house.microbits.ask("disconnect", room.index)
    house.broker.wait(room.topic("availability"), MOMENT, lambda m: m.payload == "offline", mark)
    house.broker.wait(room.topic("availability"), MOMENT, lambda m: m.payload == "online", mark)
    house.kill_gateway()
    mark = house.broker.messages.mark()
    house.start_gateway()
    house.broker.wait(room.topic("availability"), MOMENT, lambda m: m.payload == "online", mark)
    house.broker.wait(room.topic("temperature"), MOMENT, after=mark)
    mark = house.broker.messages.mark()
    house.home_assistant.restart()
    house.wait_birth(mark)
    for other in house.rooms[1:]:
        house.broker.wait(other.discovery_topic, MOMENT, after=mark)
        other.until_online()
    expect(room.device is None, f"{room.name} came back by itself")
    expect(room.discovery_topic not in house.broker.retained(), "its discovery is there again")

    house.request("device/add", identifier=room.address)
    room.until_online()
    expect(room.entities.keys() == MICROBIT.keys(), f"{room.name} has {room.entities.keys()}")


@scenario(accepts=GATEWAY_DELETED_BY_USER)
def gateway_is_deleted_by_its_user(house):
    """It comes back when the gateway is restarted; its micro:bits stay."""
    before = {room.name: room.device["id"] for room in house.rooms}
    house.home_assistant.delete(house.gateway_device)
    house.home_assistant.until("the gateway is gone", lambda: house.gateway_device is None, MOMENT)
    mark = house.broker.messages.mark()
    house.home_assistant.restart()
    house.wait_birth(mark)
    for room in house.rooms:
        room.until_online()
    known = set(house.home_assistant.devices())
    expect(known == {room.name for room in house.rooms}, f"Home Assistant knows {known}")

    house.kill_gateway()
    house.start_gateway()
    house.gateway_until("State", "on", CONNECT)
    for room in house.rooms:
        room.until_online()
        room.until_via(lambda: house.gateway_device)
        expect(room.device["id"] == before[room.name], f"{room.name} is another device")


@scenario()
def device_is_removed_by_request(house):
    room = house.rooms[1]
    house.request("device/remove", id=room.id)
    gone(house, room)
    kept = [
        topic
        for topic in house.broker.retained()
        if topic.startswith(f"{BASE}/{room.id}/") or topic == room.discovery_topic
    ]
    expect(not kept, f"the broker still keeps {kept}")
    house.gateway_until("Micro:bits known", "2")

    house.request("device/add", identifier=room.address)
    room.until_online()
    house.gateway_until("Micro:bits known", "3")


@scenario()
def device_is_disabled_and_enabled(house):
    room = house.rooms[1]
    house.request("device/options", id=room.id, options={"enabled": False})
    room.until("Temperature", lambda value: value in (None, "unavailable"))
    house.request("device/options", id=room.id, options={"enabled": True})
    room.until_online()


@scenario()
def device_is_renamed(house):
    """With another id and another name it keeps its page and its entities."""
    room = house.rooms[0]
    before = room.device["id"]
    entities = {name: entity["entity_id"] for name, entity in room.entities.items()}
    house.request("device/rename", id=room.id, to="scullery")
    house.request("device/options", id="scullery", options={"name": "Scullery"})
    was = room.id, room.name
    room.id, room.name = "scullery", "Scullery"
    try:
        room.until_online()
        expect(room.device["id"] == before, "it is another device")
        found = {name: entity["entity_id"] for name, entity in room.entities.items()}
        expect(found == entities, f"its entities are {found}")
        old = [topic for topic in house.broker.retained() if topic.startswith(f"{BASE}/{was[0]}/")]
        expect(not old, f"the broker still keeps {old}")
        house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1234)
        room.until("Measuring interval", "1234")
    finally:
        house.request("device/rename", id="scullery", to=was[0])
        house.request("device/options", id=was[0], options={"name": was[1]})
        room.id, room.name = was
    room.until_online()


@scenario(accepts=GATEWAY_REMOVED)
def discovery_is_switched_off_and_on(house):
    house.configure(discovery=False)
    house.request("reload")
    for room in house.rooms:
        gone(house, room)
    house.home_assistant.until("the gateway is gone", lambda: house.gateway_device is None, MOMENT)
    kept = [topic for topic in house.broker.retained() if topic.startswith(f"{PREFIX}/device/")]
    expect(not kept, f"the broker still keeps {kept}")
    house.configure()
    house.request("reload")
    for room in house.rooms:
        room.until_online()
    expect(house.gateway_device, "the gateway is not there")
