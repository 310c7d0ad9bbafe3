"""What a user does on the devices' pages."""

from house import BASE, CONNECT, GATEWAY_ID, MOMENT
from journal import expect
from scenarios.common import scenario
from scenarios.removal import gone


@scenario()
def period_is_set_and_shown_as_read_back(house):
    room = house.rooms[0]
    for value in (2000, 20, 65535, 1000):
        mark = house.broker.messages.mark()
        house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=value)
        room.until("Measuring interval", str(value))
        expect(house.microbits.period(room.index) == value, f"the micro:bit does not hold {value}")
        result = house.broker.wait(room.topic("period/result"), MOMENT, after=mark).json()
        expect(result["status"] == "applied" and result["actual"] == value, f"{result}")


@scenario()
def period_that_is_no_whole_number(house):
    """Home Assistant sends it nevertheless; the gateway refuses it, and the entity shows the old period."""
    room = house.rooms[0]
    before = house.microbits.period(room.index)
    mark = house.broker.messages.mark()
    house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1500.5)
    result = house.broker.wait(room.topic("period/result"), MOMENT, after=mark).json()
    expect(result["status"] == "rejected" and result["reason"], f"{result}")
    expect(house.microbits.period(room.index) == before, "it was written to the micro:bit")
    expect(room.shows("Measuring interval") == str(before), f"Home Assistant shows {room.shows('Measuring interval')}")


@scenario()
def period_out_of_its_range(house):
    """A program has set it: it is unknown, and Home Assistant does not complain of it."""
    room = house.rooms[0]
    house.broker.publish(room.topic("period"), "10", retain=True)
    room.until("Measuring interval", "unknown")
    house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=2000)
    room.until("Measuring interval", "2000")
    house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1000)
    room.until("Measuring interval", "1000")


@scenario()
def period_of_all_and_of_an_area(house):
    house.broker.publish(f"{BASE}/all/period/set", 4000)
    for room in house.rooms:
        room.until("Measuring interval", "4000")
    one = house.rooms[0]
    house.broker.publish(f"{BASE}/area/{one.area.lower()}/period/set", 1000)
    one.until("Measuring interval", "1000")
    for other in house.rooms[1:]:
        expect(house.microbits.period(other.index) == 4000, f"{other.name} is in another area")
    house.broker.publish(f"{BASE}/all/period/set", 1000)
    for room in house.rooms:
        room.until("Measuring interval", "1000")


@scenario()
def temperature_offset(house):
    """It is added to what is published, without a new connection, and shown as it was set."""
    room = house.rooms[0]
    room.until("Temperature offset", "0")
    mark = house.broker.messages.mark()
    number = room.entity("Temperature offset")["entity_id"]
    house.home_assistant.call("number", "set_value", number, value=-40.5)
    room.until("Temperature offset", "-40.5")
    cold = house.broker.wait(room.topic("temperature"), MOMENT, lambda message: message.payload.endswith(".5"), mark)
    expect(float(cold.payload) < 0, f"the temperature is {cold.payload}")
    room.until("Temperature", lambda state: state.startswith("-") and state.endswith(".5"))
    topics = [message.topic for message in house.broker.messages.since(mark)]
    expect(room.topic("availability") not in topics, "it was connected again")
    house.home_assistant.call("number", "set_value", number, value=0)
    room.until("Temperature", lambda state: state.isnumeric())
    house.request("device/options", id=room.id, options={"adjust": None})
    room.until("Temperature offset", "0")


@scenario()
def reconnect_button(house):
    room = house.rooms[0]
    mark = house.broker.messages.mark()
    house.home_assistant.call("button", "press", room.entity("Reconnect")["entity_id"])
    expect_answer(house, "device/reconnect", mark)
    for state, within in (("offline", MOMENT), ("online", CONNECT)):
        house.broker.wait(room.topic("availability"), within, lambda message: message.payload == state, mark)
    room.until_online()


@scenario()
def identify_button(house):
    """Its LEDs show its name."""
    room = house.rooms[0]
    mark = house.broker.messages.mark()
    house.home_assistant.call("button", "press", room.entity("Identify")["entity_id"])
    answer = expect_answer(house, "device/identify", mark)
    expect(answer["data"]["value"] == room.name, f"{answer}")


@scenario()
def permit_join_switch(house):
    """It shows what holds."""
    for service, wanted in (("turn_on", "on"), ("turn_off", "off")):
        mark = house.broker.messages.mark()
        house.home_assistant.call("switch", service, house.gateway_entity("Permit join")["entity_id"])
        expect_answer(house, "permit_join", mark)
        house.gateway_until("Permit join", wanted)


@scenario()
def scan_button(house):
    mark = house.broker.messages.mark()
    house.home_assistant.call("button", "press", house.gateway_entity("Scan")["entity_id"])
    expect_answer(house, "scan", mark)


@scenario()
def restart_adapter_button(house):
    mark = house.broker.messages.mark()
    house.home_assistant.call("button", "press", house.gateway_entity("Restart adapter")["entity_id"])
    expect_answer(house, "adapter/reset", mark)
    house.gateway_until("Adapter", "on")
    for room in house.rooms:
        room.until_online()


BUTTON_A = "e95dda90-251d-470a-a062-fa1922dfa9a8"
PROPERTIES = ["temperature", "period", "button_a", "led", "led_text", "pins"]


@scenario()
def every_kind_of_entity(house):
    """Buttons, LEDs and pins of a micro:bit, and a choice of periods by a profile of the user's own."""
    room = house.rooms[0]
    house.request("device/options", id=room.id, options={"properties": PROPERTIES})
    room.until("LED matrix", is_there)
    shown = {name for name in room.entities if name}
    expect({"LED matrix", "LED text", "Pin P0", "Enabled"} <= shown, f"{shown}")

    entity = entity_of(room, "text", "LED matrix")
    room.until_state(entity, lambda state: state == "/".join(["....."] * 5))
    house.home_assistant.call("text", "set_value", entity, value="#####/...../...../...../.....")
    image = house.broker.wait(room.topic("led/image"), MOMENT, lambda message: message.payload.count("<circle") == 5)
    expect(image.payload.startswith("<svg"), image.payload)
    # Home Assistant takes seconds to load what shows images.
    image = house.home_assistant.until("the image is there", lambda: entity_of(room, "image", "LED matrix", False), MOMENT)
    room.until_state(image, lambda state: state not in ("unknown", "unavailable"))

    for domain, service, key in (("text", "set_value", "value"), ("notify", "send_message", "message")):
        # Also what would be JSON by itself.
        for text in (f"by {domain}", '"hi"', '{"led":1}', "12"):
            mark = house.broker.messages.mark()
            house.home_assistant.call(domain, service, entity_of(room, domain, "LED text"), **{key: text})
            result = house.broker.wait(room.topic("led_text/result"), MOMENT, after=mark).json()
            expect(result["status"] == "accepted" and result["requested"] == text, f"{text}: {result}")

    pin = entity_of(room, "switch", "Pin P0")
    house.home_assistant.call("switch", "turn_on", pin)
    room.until_state(pin, lambda state: state == "on")
    result = house.broker.wait(room.topic("pins/result"), MOMENT).json()
    expect(result["requested"] == [{"pin": "P0", "value": 1}], f"{result}")

    triggers = house.home_assistant.triggers(room.device)
    kinds = {(trigger["type"], trigger.get("subtype")) for trigger in triggers}
    expect(("button_short_press", "Button A") in kinds, f"{kinds}")
    house.microbits.ask("value", room.index, characteristic=BUTTON_A, hex="01")
    room.until_state(entity_of(room, "event", "Button A"), lambda state: state not in ("unknown", "unavailable"))

    switch = entity_of(room, "switch", "Enabled")
    house.home_assistant.call("switch", "turn_off", switch)
    room.until("Connectivity", "off")
    room.until_state(switch, lambda state: state == "off")
    house.home_assistant.call("switch", "turn_on", switch)
    room.until_online()

    house.request("device/options", id=room.id, options={"properties": None, "enabled": None})
    room.until("Pin P0", None)

    house.request("device/add", identifier=room.address, profile="classroom")
    period = house.home_assistant.until(
        "a choice of periods", lambda: entity_of(room, "select", "Period", required=False), CONNECT
    )
    room.until_state(period, lambda state: state in ("1 s", "unknown"))
    house.home_assistant.call("select", "select_option", period, option="2 s")
    room.until_state(period, lambda state: state == "2 s")
    expect(house.microbits.period(room.index) == 2000, "the micro:bit has another period")
    house.home_assistant.call("select", "select_option", period, option="1 s")
    room.until_state(period, lambda state: state == "1 s")
    house.home_assistant.until("the number is gone", lambda: "Measuring interval" not in room.entities, MOMENT)
    house.request("device/remove", id=room.id)
    gone(house, room)
    house.request("device/add", identifier=room.address, id=room.id, name=room.name, area=room.area)
    room.until_online()
    expect("Period" not in room.entities, f"the choice is still there: {room.entities.keys()}")


def entity_of(room, domain, name, required=True):
    """The id of the entity with that domain and name; entities of other domains may have the same name."""
    found = [
        entity["entity_id"]
        for entity in room.house.home_assistant.list_entities(room.device)
        if entity["original_name"] == name and entity["entity_id"].startswith(f"{domain}.")
    ]
    expect(found or not required, f"no {domain} '{name}'")
    return found[0] if found else None


def is_there(state):
    return state is not None


def expect_answer(house, verb, mark):
    answer = house.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/{verb}", 2 * MOMENT, after=mark).json()
    expect(answer["status"] == "ok", f"{verb}: {answer}")
    return answer
