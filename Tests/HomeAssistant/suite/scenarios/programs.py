"""What a micro:bit's program offers is there by itself; another program leaves nothing behind."""

from house import CONNECT, MOMENT
from journal import expect
from scenarios.common import scenario
from scenarios.pages import MICROBIT

BUTTONS = "e95d9882-251d-470a-a062-fa1922dfa9a8"
UART = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"


def send(house, room, line):
    house.microbits.ask("value", room.index, characteristic=UART, hex=f"{line}\n".encode().hex())


@scenario()
def another_program(house):
    """Its buttons are gone with the next connection, and have the same entities when they are back. An automation waits for one."""
    room = house.rooms[0]
    trigger = next(
        trigger
        for trigger in house.home_assistant.triggers(room.device)
        if (trigger["type"], trigger.get("subtype")) == ("button_short_press", "Button A")
    )
    del trigger["metadata"]
    house.home_assistant.automate("pressed", triggers=[trigger], actions=[])
    before = room.entity("Button A")["entity_id"]
    house.microbits.ask("serve", room.index, service=BUTTONS, on=False)
    house.microbits.ask("reset", room.index)
    house.home_assistant.until("the buttons are gone", lambda: "Button A" not in room.entities, CONNECT)
    expect(room.entities.keys() == MICROBIT.keys() - {"Button A", "Button B"}, f"{room.entities.keys()}")
    house.microbits.ask("serve", room.index, service=BUTTONS, on=True)
    house.microbits.ask("reset", room.index)
    house.home_assistant.until("the buttons are back", lambda: "Button A" in room.entities, CONNECT)
    expect(room.entity("Button A")["entity_id"] == before, f"it is another entity: {room.entity('Button A')}")
    room.until_online()
    house.home_assistant.delete_automation("pressed")


@scenario()
def values_of_a_program(house):
    """A value is a sensor from the second time on, with its unit, until it is removed."""
    room = house.rooms[1]
    send(house, room, "soil_%:40")
    send(house, room, "door:open")
    send(house, room, "soil_%:41")
    room.until("Soil", "41")
    state = room.entity("Soil")["state"]
    expect(state["attributes"]["unit_of_measurement"] == "%", f"{state}")
    expect(state["attributes"]["state_class"] == "measurement", f"{state}")
    expect("Door" not in room.entities, "it was received once")
    send(house, room, "door:closed")
    room.until("Door", "closed")
    send(house, room, "soil_%:broken")
    send(house, room, "door:ajar")
    room.until("Door", "ajar")
    expect(room.shows("Soil") == "41", f"a text among numbers shows: {room.shows('Soil')}")
    send(house, room, "soil_%:42.5")
    room.until("Soil", "42.5")
    for name in ("soil", "door"):
        house.request("value/remove", id=room.id, property=name)
    house.home_assistant.until("the values are gone", lambda: room.entities.keys() == MICROBIT.keys(), MOMENT)
