"""Devices that are removed while Home Assistant is not connected are gone when it connects again."""

import json

from house import BASE, CONNECT, MOMENT, is_known
from journal import expect
from scenarios.availability import BROKER_WAS_AWAY
from scenarios.common import scenario
from scenarios.pages import MICROBIT
from scenarios.removal import GATEWAY_REMOVED, gone


def start_home_assistant(house):
    mark = house.broker.messages.mark()
    house.home_assistant.start()
    house.wait_birth(mark)


@scenario()
def device_is_removed_while_home_assistant_is_away(house):
    room = house.rooms[1]
    house.home_assistant.stop()
    house.request("device/remove", id=room.id)
    start_home_assistant(house)
    gone(house, room)
    # It is removed only once.
    mark = house.broker.messages.mark()
    house.home_assistant.restart()
    house.wait_birth(mark)
    for other in house.rooms:
        if other is not room:
            house.broker.wait(other.discovery_topic, MOMENT, after=mark)
    told = [m for m in house.broker.messages.since(mark) if m.topic == room.discovery_topic]
    expect(not told, f"Home Assistant is told of it again: {told}")
    house.request("device/add", identifier=room.address)
    room.until_online()


@scenario()
def device_is_removed_and_added_while_home_assistant_is_away(house):
    room = house.rooms[1]
    before = room.device["id"]
    house.home_assistant.stop()
    house.request("device/remove", id=room.id)
    mark = house.broker.messages.mark()
    house.request("device/add", identifier=room.address)
    house.broker.wait(room.discovery_topic, MOMENT, lambda message: message.payload, mark)
    start_home_assistant(house)
    room.until_online()
    expect(room.device["id"] == before, "it is another device")
    expect(room.entities.keys() == MICROBIT.keys(), f"{room.name} has {room.entities.keys()}")


@scenario(accepts=GATEWAY_REMOVED)
def discovery_is_switched_off_while_home_assistant_is_away(house):
    house.home_assistant.stop()
    house.configure(discovery=False)
    house.request("reload")
    start_home_assistant(house)
    for room in house.rooms:
        gone(house, room)
    house.home_assistant.until("the gateway is gone", lambda: house.gateway_device is None, MOMENT)
    house.configure()
    house.request("reload")
    for room in house.rooms:
        room.until_online()
    house.gateway_until("State", "on")


@scenario(accepts=BROKER_WAS_AWAY)
def device_is_removed_while_the_broker_is_away(house):
    """The gateway reconnects before Home Assistant has subscribed again."""
    room = house.rooms[0]
    house.broker.stop()
    house.gateway.end()
    house.configure(but=room)
    # Another scenario added it by a request: without this, the gateway would still know it.
    house.doctor_state(f"devices/{room.address}", lambda record: record.pop("added", None))
    house.start_gateway()
    mark = house.broker.messages.mark()
    house.broker.start()
    house.wait_birth(mark)
    gone(house, room)
    house.configure()
    house.request("reload")
    for other in house.rooms:
        other.until_online()


def entity_of_an_earlier_version(house, room):
    """While the gateway is stopped: makes it look as if its earlier version had announced one more entity."""
    document = json.loads(house.broker.retained()[room.discovery_topic])
    document["cmps"]["teapot"] = {
        "p": "sensor",
        "uniq_id": f"{room.object_id}_teapot",
        "name": "Teapot",
        "stat_t": f"{BASE}/{room.id}/teapot",
    }
    house.broker.publish(room.discovery_topic, document, retain=True)
    room.until("Teapot", "unavailable")
    house.doctor_state(
        f"home_assistant/{room.address}",
        lambda record: record["announced"]["components"].update(teapot="sensor"),
    )


@scenario()
def entity_that_is_no_more(house):
    room = house.rooms[0]
    # Stopped in order, so that the last announcements are stored.
    house.gateway.end()
    entity_of_an_earlier_version(house, room)
    house.start_gateway()
    room.until_online()
    house.home_assistant.until(
        "the entity is gone", lambda: room.entities.keys() == MICROBIT.keys(), MOMENT
    )


@scenario()
def entity_that_is_no_more_while_home_assistant_is_away(house):
    room = house.rooms[0]
    house.gateway.end()
    entity_of_an_earlier_version(house, room)
    house.home_assistant.stop()
    mark = house.broker.messages.mark()
    house.start_gateway()
    house.broker.wait(room.discovery_topic, MOMENT, after=mark)
    start_home_assistant(house)
    room.until_online()
    house.home_assistant.until(
        "the entity is gone", lambda: room.entities.keys() == MICROBIT.keys(), MOMENT
    )


@scenario()
def entity_of_another_platform_while_home_assistant_is_away(house):
    """The number is gone, and the choice in its place is there; and back."""
    room = house.rooms[0]
    own = {"Measuring interval": "number", "Period": "select"}

    def shows(name):
        # What is to be removed has no name any more.
        found = [
            entity["entity_id"].split(".")[0]
            for entity in house.home_assistant.list_entities(room.device)
            if entity["unique_id"] == f"{room.object_id}_period"
        ]
        return found == [own[name]]

    for profile, name in (("classroom", "Period"), ("microbit", "Measuring interval")):
        house.home_assistant.stop()
        mark = house.broker.messages.mark()
        house.request("device/add", identifier=room.address, profile=profile)

        def is_complete(message):
            return f'"name":"{name}"' in message.payload

        house.broker.wait(room.discovery_topic, CONNECT, is_complete, mark)
        start_home_assistant(house)
        room.until(name, is_known, CONNECT)
        house.home_assistant.until(f"{name} alone is there", lambda: shows(name), MOMENT)
