"""What a user does on the pages."""

from house import BASE, GATEWAY_ID, MOMENT
from journal import expect
from scenarios.common import scenario


@scenario()
def period_is_set_and_shown_as_read_back(house):
    room = house.rooms[0]
    for value in (2000, 20, 65535, 1000):
        mark = house.broker.messages.mark()
        house.home_assistant.call("number", "set_value", room.entity("Period")["entity_id"], value=value)
        room.until("Period", str(value))
        expect(house.microbits.period(room.index) == value, f"the micro:bit does not hold {value}")
        result = house.broker.wait(room.topic("period/result"), MOMENT, after=mark).json()
        expect(result["status"] == "applied" and result["actual"] == value, f"{result}")


@scenario()
def period_that_is_no_whole_number(house):
    """Home Assistant sends it all the same; the gateway refuses it, and what is shown stays true."""
    room = house.rooms[0]
    before = house.microbits.period(room.index)
    mark = house.broker.messages.mark()
    house.home_assistant.call("number", "set_value", room.entity("Period")["entity_id"], value=1500.5)
    result = house.broker.wait(room.topic("period/result"), MOMENT, after=mark).json()
    expect(result["status"] == "rejected" and result["reason"], f"{result}")
    expect(house.microbits.period(room.index) == before, "it was written to the micro:bit")
    expect(room.shows("Period") == str(before), f"Home Assistant shows {room.shows('Period')}")


@scenario()
def period_of_all_and_of_an_area(house):
    house.broker.publish(f"{BASE}/all/period/set", 4000)
    for room in house.rooms:
        room.until("Period", "4000")
    one = house.rooms[0]
    house.broker.publish(f"{BASE}/area/{one.area.lower()}/period/set", 1000)
    one.until("Period", "1000")
    for other in house.rooms[1:]:
        expect(house.microbits.period(other.index) == 4000, f"{other.name} is in another area")
    house.broker.publish(f"{BASE}/all/period/set", 1000)
    for room in house.rooms:
        room.until("Period", "1000")


@scenario()
def reconnect_button(house):
    room = house.rooms[0]
    mark = house.broker.messages.mark()
    house.home_assistant.call("button", "press", room.entity("Reconnect")["entity_id"])
    expect_answer(house, "device/reconnect", mark)
    house.broker.wait(room.topic("availability"), MOMENT, lambda message: message.payload == "offline", mark)
    room.until_online()


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


def expect_answer(house, verb, mark):
    answer = house.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/{verb}", 2 * MOMENT, after=mark).json()
    expect(answer["status"] == "ok", f"{verb}: {answer}")
