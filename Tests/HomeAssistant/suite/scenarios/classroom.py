"""A class: micro:bits are switched on, and what their programs offer is there, without a line of configuration."""

from house import CONNECT, MOMENT, is_number
from journal import expect
from scenarios.availability import ids
from scenarios.common import scenario
from scenarios.removal import gone
from school import School

EVERY = {"Connectivity", "Signal strength", "Firmware", "Model", "Enabled", "Reconnect"}
TEMPERATURE = {"Temperature", "Temperature offset", "Measuring interval"}
BUTTONS = {"Button A", "Button B"}
LED = {"LED text", "Identify"}
LED_TEXT = "e95d93ee-251d-470a-a062-fa1922dfa9a8"
UART_IN = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"

PROGRAMS = [
    (["temperature", "led"], [], TEMPERATURE | LED),
    (["buttons", "accelerometer"], [], BUTTONS),
    (["uart"], ["moisture_%:40", "moisture_%:41"], {"UART", "Moisture"}),
    (["uart", "temperature"], ["light:7", "count:1", "light:8", "count:2"], {"UART", "Light", "Count"} | TEMPERATURE),
    (["uart"], ["servo:0", "servo:0"], {"UART", "Servo"}),
]
"""Of each micro:bit: the services, what it sends, and its entities that are enabled."""
DISABLED = [set(), {f"Acceleration {axis}" for axis in "xyz"}, set(), set(), set()]
"""Of each micro:bit: the entities that are disabled until a user enables them."""


# `init` tries whether it may announce: no payload at all would be without a warning.
INIT = [(r"No device components to cleanup for doctor-", 2)]
ENABLED_BY_USER = [
    # Home Assistant sets all of MQTT up anew. Then, and with their device, it removes once more the triggers that it has
    # removed since its start.
    (r"dispatcher\] Unable to remove unknown dispatcher .*MqttDeviceTrigger", 100),
    # It clears the topic of a device that is removed for each of those, and for each entity that is disabled.
    (r"mqtt\.discovery\] No device components to cleanup for ble_e15a00000001,", 6 + 2),
]


@scenario(accepts=INIT + ENABLED_BY_USER)
def five_programs(house):
    school, gym = School(house, "school", 0), None
    home_assistant, rooms = house.home_assistant, school.rooms

    def offers(index, entities, disabled):
        room = rooms[index]
        wanted = {name: None for name in entities | EVERY} | {name: "integration" for name in disabled}

        def found():
            return {name: entity["disabled_by"] for name, entity in room.entities.items()}

        home_assistant.until(f"{room.name} has {sorted(wanted.items())}", lambda: found() == wanted, CONNECT)
        room.until("Connectivity", "on", CONNECT)

    try:
        home_assistant.until("the gateway of the school", lambda: school.device, CONNECT)
        school.permit_join("off", "on")
        for index, (services, lines, entities) in enumerate(PROGRAMS):
            school.flash(index, services)
            school.microbits.ask("return", index)
            home_assistant.until(f"{rooms[index].name} is on", lambda: rooms[index].device, CONNECT)
            rooms[index].until("Connectivity", "on", CONNECT)
            school.send(index, *lines)
            offers(index, entities, DISABLED[index])
        school.permit_join("on", "off")
        rooms[2].until("Moisture", "41")
        for index, name, unit in ((0, "Temperature", "°C"), (2, "Moisture", "%"), (3, "Light", None)):
            attributes = rooms[index].entity(name)["state"]["attributes"]
            expect(attributes.get("unit_of_measurement") == unit, f"{name}: {attributes}")

        # The servo is set, and its program confirms it.
        house.broker.publish(rooms[4].topic("values/servo/set"), "90")
        home_assistant.until("the servo is told", lambda: school.written(4, UART_IN) == "servo:90\n", MOMENT)
        school.send(4, "servo:90")
        rooms[4].until("Servo", "90")

        # A user enables one that was disabled.
        home_assistant.enable(rooms[1].entity("Acceleration x")["entity_id"])
        rooms[1].until("Acceleration x", is_number, CONNECT)
        offers(1, BUTTONS | {"Acceleration x"}, {"Acceleration y", "Acceleration z"})

        # Another program. Home Assistant 2025.4 removes entities that are disabled with their device alone.
        school.flash(1, ["temperature"])
        school.microbits.ask("reset", 1)
        offers(1, TEMPERATURE, set() if home_assistant.is_newer else {"Acceleration y", "Acceleration z"})
        kept = school.retained(1)
        expect(not kept & {"button_a", "button_b", "accelerometer"}, f"the broker keeps {kept}")

        # Which one is it?
        home_assistant.call("button", "press", rooms[0].entity("Identify")["entity_id"])
        home_assistant.until("its LEDs show it", lambda: school.written(0, LED_TEXT), MOMENT)

        # Corrected.
        school.microbits.ask("temp", 0, v=21)
        rooms[0].until("Temperature", "21")
        number = rooms[0].entity("Temperature offset")["entity_id"]
        home_assistant.call("number", "set_value", number, value=-2)
        rooms[0].until("Temperature", "19")

        # Two move.
        before = [(room.device["id"], ids(room.entities)) for room in rooms]
        gym = School(house, "gym", 0, 2)
        home_assistant.until("the gateway of the gym", lambda: gym.device, CONNECT)
        for index in (0, 2):
            gym.flash(index, PROGRAMS[index][0])
            school.microbits.ask("vanish", index)
            rooms[index].until("Connectivity", "off", CONNECT)
            gym.microbits.ask("return", index)
            rooms[index].until("Connectivity", "on", CONNECT)
            home_assistant.until(
                "it is via the gym", lambda: rooms[index].device["via_device_id"] == gym.device["id"], MOMENT)
        # What is set by request, but for desired values, is each gateway's own.
        gym.microbits.ask("temp", 0, v=25)
        rooms[0].until("Temperature", "25")
        home_assistant.call("number", "set_value", number, value=-2)
        rooms[0].until("Temperature", "23")
        gym.send(2, "moisture_%:50")
        rooms[2].until("Moisture", "50")
        found = [(room.device["id"], ids(room.entities)) for room in rooms]
        expect(found == before, f"other devices or entities: {found}, before: {before}")

        # Nothing is left of them.
        for index, room in enumerate(rooms):
            for gateway in [school, gym] if index in (0, 2) else [school]:
                house.request("device/remove", gateway.name, id=gateway.rooms[index].id)
            gone(house, room)
            home_assistant.until("the broker keeps nothing of it", lambda: not school.retained(index), MOMENT)
    finally:
        for gateway in filter(None, (gym, school)):
            gateway.leave()
