"""A micro:bit that is connected on demand: visited every two minutes, and connected for commands and sequences."""

import json

from journal import expect
from scenarios.common import ANSWER, CONNECT, RETURN, scenario
from world import BASE, GATEWAY_ID

EVERY = 120
OVERDUE = 2 * EVERY + 60


def changes(device, after):
    return [message.payload for message in device.world.broker.on(device.topic("availability"), after)]


def visits(device, after):
    """The times of the visits, from `info`."""
    infos = [message.json() for message in device.world.broker.on(device.topic("info"), after)]
    return sorted({info["last_connected"] for info in infos if "last_connected" in info})


@scenario(debians=(12, 13))
def visited_on_demand(world):
    world.start(microbits=2)
    rare, steady = world.devices()
    world.start_gateway(
        [
            {"match": {"identifier": rare.address}, "connect": "on_demand", "every": EVERY, "period": 2000},
            {"match": {"identifier": steady.address}},
        ]
    )
    steady.wait_availability("online", 2 * CONNECT)
    rare.wait_availability("online", 2 * CONNECT)
    rare.wait_readings(1, CONNECT, after=0)
    rare.wait_period(2000, CONNECT)
    world.microbits.until(0, CONNECT, connected=False)
    mark = world.broker.messages.mark()

    # Two more visits, and nothing between them.
    steady_before = steady.wait_readings(1, CONNECT)[0]["sequence"]
    rare.wait_readings(2, 2 * EVERY + 2 * RETURN, after=mark)
    world.microbits.until(0, CONNECT, connected=False)
    expect("offline" not in changes(rare, mark), f"{changes(rare, mark)} between the visits")
    expect(len(visits(rare, mark)) >= 2, f"visits: {visits(rare, mark)}")
    expect(world.microbits.all()[0]["links"] == 3, f"links: {world.microbits.all()[0]['links']}")

    # The one that is always connected has missed nothing.
    expect(changes(steady, mark) == [], f"the other micro:bit went {changes(steady, mark)}")
    readings = [m.json()["sequence"] for m in world.broker.on(steady.topic("readings"), mark)]
    expect(readings == list(range(readings[0], readings[-1] + 1)), "readings of the other one are missing")
    expect(readings[-1] - steady_before > EVERY, f"it had {len(readings)} readings")

    # A command and a sequence are carried out at once.
    mark = world.broker.messages.mark()
    rare.set_period("1500")
    rare.wait_result("pending", ANSWER, after=mark)
    rare.wait_result("applied", RETURN, after=mark)
    expect(world.microbits.ask("state")["period"] == 1500, "the micro:bit holds another period")
    world.microbits.until(0, CONNECT, connected=False)
    request = {
        "id": rare.id,
        "steps": [
            {"write": {"property": "period", "value": 1000}},
            {"read": "temperature"},
            {"write": {"property": "period", "value": 3000}},
        ],
    }
    topic = f"{BASE}/bridge/{GATEWAY_ID}"
    world.broker.publish(f"{topic}/request/device/sequence", json.dumps(request))
    answer = world.broker.wait(f"{topic}/response/device/sequence", RETURN, after=mark).json()
    expect([step["status"] for step in answer["data"]] == ["applied", "read", "applied"], f"{answer}")
    expect(world.microbits.ask("state")["period"] == 3000, "the micro:bit holds another period")
    world.microbits.until(0, CONNECT, connected=False)

    # Out of range: online until a visit is overdue, and online again after the next one.
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish")
    gone = rare.wait_availability("offline", OVERDUE + 5, after=mark)
    last = [m for m in world.broker.on(rare.topic("info")) if "offline_since" not in m.json()][-1]
    expect(gone.at - last.at > OVERDUE - 5, f"offline {gone.at - last.at} s after the last visit")
    world.microbits.ask("return")
    rare.wait_availability("online", 2 * RETURN, after=mark)
