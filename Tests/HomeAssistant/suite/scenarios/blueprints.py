"""Automations made from the blueprints of deploy/home-assistant act."""

import os
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from home_assistant import BLUEPRINTS
from house import CONNECT, MOMENT
from journal import expect
from scenarios.common import scenario
from scenarios.removal import gone
from scenarios.use import BUTTON_A, entity_of, is_there

FOLDER = "microbit-gateway"
SOON = 10
"""Seconds until a time at which an automation is to act."""


def expect_offered(house, blueprint, name, entity_id):
    """The form for a new automation offers the entity for this input."""
    selector = house.home_assistant.blueprints()[blueprint]["metadata"]["input"][name]["selector"]
    (offered,) = selector["entity"]["filter"]
    registry = house.home_assistant.socket.ask("config/entity_registry/get", entity_id=entity_id)
    found = {
        "integration": registry["platform"],
        "domain": [entity_id.split(".")[0]],
        "device_class": [registry["device_class"] or registry["original_device_class"]],
    }
    expect(found == offered, f"{entity_id} is not offered: {found} is not {offered}")


def event(name):
    """An action that a scenario can wait for."""
    return [{"event": name}]


def wait_event(house, name, mark):
    events = house.home_assistant.socket.events
    return events.wait(lambda event: event["event_type"] == name, MOMENT, f"event {name}", mark)


def events_since(house, mark):
    """The names of the events that automations of this module fire."""
    names = [event["event_type"] for event in house.home_assistant.socket.events.since(mark)]
    return [name for name in names if name.startswith("microbit_")]


@scenario()
def blueprints_are_listed(house):
    found = house.home_assistant.blueprints()
    shipped = {f"{FOLDER}/{name}" for name in os.listdir(os.path.join(BLUEPRINTS, "automation", FOLDER))}
    expect({path for path in found if path.startswith(FOLDER)} == shipped, f"{found.keys()} are listed")
    for path in shipped:
        expect("metadata" in found[path], f"{path}: {found[path]}")


@scenario()
def notification_when_something_is_offline(house):
    home_assistant, room, blueprint = house.home_assistant, house.rooms[0], f"{FOLDER}/offline.yaml"
    microbit = room.entity("Connectivity")["entity_id"]
    gateway = house.gateway_entity("State")["entity_id"]
    for entity_id in (microbit, gateway):
        expect_offered(house, blueprint, "connectivity", entity_id)
    home_assistant.save_automation(
        "offline", blueprint, connectivity=[microbit, gateway], duration={"seconds": 1}
    )

    def until_notified(*wanted):
        home_assistant.until(
            f"{wanted} are offline", lambda: home_assistant.notifications().keys() == set(wanted), CONNECT
        )

    house.microbits.ask("vanish", room.index)
    until_notified(microbit)
    shown = home_assistant.notifications()[microbit]
    expect(shown["title"] == f"{room.name} is offline", f"{shown}")
    expect(shown["message"].startswith(f"{room.name} has been offline since "), f"{shown}")
    house.microbits.ask("return", room.index)
    room.until_online()
    until_notified()

    house.kill_gateway()
    until_notified(microbit, gateway)
    house.start_gateway()
    room.until_online()
    until_notified()
    home_assistant.delete_automation("offline")


@scenario()
def longer_period_at_night(house):
    home_assistant, rooms, blueprint = house.home_assistant, house.rooms[:2], f"{FOLDER}/night.yaml"
    zone = ZoneInfo(home_assistant.socket.ask("get_config")["time_zone"])
    periods = [room.entity("Measuring interval")["entity_id"] for room in rooms]
    for entity_id in periods:
        expect_offered(house, blueprint, "periods", entity_id)

    def save(day, night):
        """Both in seconds from now."""
        begin = {
            name: f"{datetime.now(zone) + timedelta(seconds=seconds):%H:%M:%S}"
            for name, seconds in (("day_begins", day), ("night_begins", night))
        }
        home_assistant.save_automation(
            "night", blueprint, periods=periods, day_interval=2.5, night_interval=30, **begin
        )

    def until_period(period):
        for room in rooms:
            room.until("Measuring interval", str(period), SOON + MOMENT)
            expect(house.microbits.period(room.index) == period, f"the micro:bit does not hold {period}")

    save(day=-3600, night=3600)
    until_period(2500)
    save(day=-3600, night=SOON)
    until_period(30000)
    # What is changed while Home Assistant is not running is set when it is back.
    home_assistant.stop()
    for room in rooms:
        house.request("device/options", id=room.id, options={"period": 1000})
    mark = house.broker.messages.mark()
    home_assistant.start()
    house.wait_birth(mark)
    until_period(30000)
    save(day=SOON, night=-3600)
    until_period(2500)

    home_assistant.delete_automation("night")
    for room in rooms:
        house.request("device/options", id=room.id, options={"period": None})
        home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1000)
    until_period(1000)


@scenario()
def button_runs_actions(house):
    home_assistant, room, blueprint = house.home_assistant, house.rooms[0], f"{FOLDER}/button.yaml"
    house.request("device/options", id=room.id, options={"properties": ["temperature", "period", "button_a"]})
    room.until("Button A", is_there)
    button = entity_of(room, "event", "Button A")
    room.until_state(button, lambda state: state != "unavailable")
    expect_offered(house, blueprint, "buttons", button)
    home_assistant.save_automation(
        "button",
        blueprint,
        buttons=[button],
        press_actions=event("microbit_pressed"),
        long_press_actions=event("microbit_held"),
        release_actions=event("microbit_released"),
    )
    mark = home_assistant.socket.events.mark()
    for value, name in (("01", "microbit_pressed"), ("02", "microbit_held"), ("00", "microbit_released")):
        house.microbits.ask("value", room.index, characteristic=BUTTON_A, hex=value)
        wait_event(house, name, mark)

    # The last press is shown again when the micro:bit is back: that is not another one.
    house.microbits.ask("vanish", room.index)
    room.until_state(button, lambda state: state == "unavailable", CONNECT)
    house.microbits.ask("return", room.index)
    room.until_online()
    room.until_state(button, lambda state: state != "unavailable")
    house.microbits.ask("value", room.index, characteristic=BUTTON_A, hex="01")
    home_assistant.until("the button is pressed again", lambda: len(events_since(house, mark)) > 3, MOMENT)
    found = events_since(house, mark)
    expect(
        found == ["microbit_pressed", "microbit_held", "microbit_released", "microbit_pressed"], f"{found}"
    )
    home_assistant.delete_automation("button")
    # Added anew, it has no removed entities, which would be removed once more at Home Assistant's next start.
    house.request("device/remove", id=room.id)
    gone(house, room)
    house.request("device/add", identifier=room.address, id=room.id, name=room.name, area=room.area)
    room.until_online()


@scenario()
def temperature_passes_two_limits(house):
    home_assistant, room, blueprint = house.home_assistant, house.rooms[0], f"{FOLDER}/temperature.yaml"
    temperature = room.entity("Temperature")["entity_id"]
    expect_offered(house, blueprint, "temperature", temperature)

    def warm(degrees):
        house.microbits.ask("temp", room.index, v=degrees)
        room.until("Temperature", str(degrees))

    warm(20)
    home_assistant.save_automation(
        "temperature",
        blueprint,
        temperature=temperature,
        upper=28,
        lower=26,
        duration={"seconds": 0},
        above_actions=event("microbit_warm"),
        below_actions=event("microbit_cool"),
    )
    mark = home_assistant.socket.events.mark()
    for degrees in (27, 30, 27, 20):
        warm(degrees)
    wait_event(house, "microbit_cool", mark)
    found = events_since(house, mark)
    expect(found == ["microbit_warm", "microbit_cool"], f"{found}")
    home_assistant.delete_automation("temperature")
    house.microbits.ask("temp", room.index)
