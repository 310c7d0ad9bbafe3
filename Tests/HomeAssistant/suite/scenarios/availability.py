"""Devices that are offline are shown as unavailable, and as available again when they return."""

import signal

from house import CONNECT, MOMENT, is_known
from journal import expect
from scenarios.common import scenario

BUTTON_A = "e95dda90-251d-470a-a062-fa1922dfa9a8"

READINGS = ("Temperature", "Measuring interval", "Signal strength", "Firmware")

BROKER_WAS_AWAY = [
    (r"mqtt\.client\] Error returned from MQTT server: The connection was lost", 1),
    (r"mqtt\.util\] Error talking to MQTT: The client is not currently connected", 1),
    (r"paho\.mqtt\.client\] failed to receive on socket", 1),
    (r"mqtt\.client\] Failed to connect to MQTT server", 20),
]


def expect_alone(house, absent):
    """All other micro:bits are online."""
    for room in house.rooms:
        if room is not absent:
            expect(room.shows("Connectivity") == "on", f"{room.name} went away too")


@scenario()
def microbit_goes_and_comes_back(house):
    room = house.rooms[0]
    house.microbits.ask("vanish", room.index)
    for name in READINGS:
        room.until(name, "unavailable", CONNECT)
    room.until("Connectivity", "off")
    expect(room.shows("Reconnect") != "unavailable", "the button cannot be pressed when it is of use")
    house.gateway_until("Micro:bits online", "2")
    expect_alone(house, room)
    house.microbits.ask("return", room.index)
    room.until_online()
    house.gateway_until("Micro:bits online", "3")


@scenario()
def gateway_is_killed_and_started(house):
    house.kill_gateway()
    house.gateway_until("State", "off")
    house.gateway_until("Adapter", "unavailable")
    for room in house.rooms:
        for name in (*READINGS, "Connectivity", "Reconnect"):
            room.until(name, "unavailable")
    house.start_gateway()
    house.gateway_until("State", "on", CONNECT)
    for room in house.rooms:
        room.until_online()
        room.until_via(lambda: house.gateway_device)


@scenario()
def gateway_is_stopped_and_started(house):
    expect(house.gateway.end(signal.SIGTERM) == 0, "it did not end in order")
    house.gateway_until("State", "off")
    for room in house.rooms:
        room.until("Temperature", "unavailable")
    house.start_gateway()
    for room in house.rooms:
        room.until_online()


@scenario(accepts=BROKER_WAS_AWAY)
def broker_is_restarted(house):
    house.broker.stop()
    for room in house.rooms:
        room.until("Temperature", "unavailable")
    mark = house.broker.messages.mark()
    house.broker.start()
    house.wait_birth(mark)
    for room in house.rooms:
        room.until_online()
    house.gateway_until("State", "on")


@scenario(accepts=BROKER_WAS_AWAY)
def broker_that_has_lost_everything(house):
    house.broker.stop()
    house.broker.forget()
    mark = house.broker.messages.mark()
    house.broker.start()
    house.wait_birth(mark)
    for room in house.rooms:
        room.until_online()
        room.until_via(lambda: house.gateway_device)
    house.gateway_until("State", "on")
    kept = house.broker.retained()
    for topic in (house.gateway_discovery_topic, *(room.discovery_topic for room in house.rooms)):
        expect(topic in kept, f"{topic} is not there")


@scenario()
def home_assistant_is_restarted(house):
    # A press of before is shown, and is not another one.
    first = house.rooms[0]
    button = first.entity("Button A")["entity_id"]
    earlier = house.home_assistant.state_of(button)
    house.microbits.ask("value", first.index, characteristic=BUTTON_A, hex="01")
    first.until_state(button, lambda state: is_known(state) and state != earlier)
    pressed = house.home_assistant.state_of(button)
    # Entities that were removed are announced once more after a start, without their names, and removed 5 s later.
    before = {room.name: {name: id for name, id in ids(room.entities).items() if name != "MQTT Sensor"} for room in house.rooms}
    mark = house.broker.messages.mark()
    house.home_assistant.restart()
    house.wait_birth(mark)
    for room in house.rooms:
        # Announced again: the broker may have lost its retained messages while Home Assistant was not running.
        house.broker.wait(room.discovery_topic, MOMENT, after=mark)
        room.until_online()
        room.until_via(lambda: house.gateway_device)
        house.home_assistant.until(
            f"{room.name} has {before[room.name]}", lambda: ids(room.entities) == before[room.name], CONNECT)
    first.until_state(button, is_known)
    expect(house.home_assistant.state_of(button) == pressed, "Home Assistant takes the press for another one")


def ids(entities):
    return {name: entity["entity_id"] for name, entity in entities.items()}
