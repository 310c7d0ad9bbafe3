"""A period set by MQTT is written, read back and confirmed, or refused with a reason."""

import json

from journal import expect
from scenarios.common import ANSWER, RETURN, expect_cadence, scenario, start_one


@scenario()
def period_is_set_and_confirmed(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    device.set_period("200")
    result = device.wait_result("applied", ANSWER, after=mark)
    expect(result["requested"] == 200 and result["actual"] == 200, f"{result}")
    device.wait_period(200, ANSWER, after=mark)
    expect(world.microbits.ask("state")["period"] == 200, "the micro:bit holds another period")
    expect_cadence(device, 0.2)


@scenario()
def period_by_json_with_transaction(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    device.set_period(json.dumps({"value": 2500, "transaction": "a1"}))
    result = device.wait_result("applied", ANSWER, after=mark)
    expect(result["requested"] == 2500 and result["actual"] == 2500, f"{result}")
    expect(result["transaction"] == "a1", f"transaction of {result}")
    device.wait_period(2500, ANSWER, after=mark)
    expect(world.microbits.ask("state")["period"] == 2500, "the micro:bit holds another period")
    expect_cadence(device, 2.5)


@scenario()
def period_bounds(world):
    """Both limits are applied; values beyond them are rejected and change nothing."""
    device = start_one(world)
    for value in (20, 65535):
        mark = world.broker.messages.mark()
        device.set_period(str(value))
        result = device.wait_result("applied", ANSWER, after=mark)
        expect(result["actual"] == value, f"{result}")
        expect(world.microbits.ask("state")["period"] == value, "the micro:bit holds another period")
    for payload in ("0", "19", "65536", "-1", "1.5", "soon", '{"value":"soon"}'):
        mark = world.broker.messages.mark()
        device.set_period(payload)
        result = device.wait_result("rejected", ANSWER, after=mark)
        expect(result["reason"], f"no reason in {result}")
        expect(world.microbits.ask("state")["period"] == 65535, f"{payload} was written to the micro:bit")


@scenario()
def period_by_response_topic(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    properties = [
        "-D",
        "publish",
        "response-topic",
        "caller/answers",
        "-D",
        "publish",
        "correlation-data",
        "c7",
    ]
    world.broker.publish(device.topic("period/set"), "", "-m", "750", *properties)
    answer = world.broker.wait("caller/answers", ANSWER, after=mark).json()
    expect(answer["status"] == "applied" and answer["actual"] == 750, f"{answer}")


@scenario()
def period_for_an_absent_microbit(world):
    """The command is kept, and applied when the micro:bit is back."""
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish")
    device.wait_availability("offline", RETURN, after=mark)
    device.set_period('{"value":700,"transaction":"later"}')
    expect(device.wait_result("pending", ANSWER, after=mark)["transaction"] == "later", "another transaction")
    world.microbits.ask("return")
    result = device.wait_result("applied", RETURN, after=mark)
    expect(result["transaction"] == "later" and result["actual"] == 700, f"{result}")
    expect(world.microbits.ask("state")["period"] == 700, "the micro:bit holds another period")
