"""The scenarios: each a function of a World of its own, in a guest of its own."""

import json
import signal
import time
from datetime import datetime
from statistics import median

from journal import Failed, expect
from world import BASE, GATEWAY_ID, RFC3339, START, Microbits, World, Broker

CONNECT = 30
"""Seconds from being heard to the first reading, for one micro:bit."""
RETURN = 60
"""The same after a fault: with the gateway's back-off."""
ANSWER = 15
"""Seconds from a command to its result."""

BY_PREFIX = [{"match": {"name_prefix": "BBC micro:bit"}}]

scenarios = {}


def scenario(virtual_time=True):
    """Registers a scenario by its name. Without virtual time it also shows what CPU time and latencies do."""

    def register(function):
        function.virtual_time = virtual_time
        scenarios[function.__name__] = function
        return function

    return register


# Finding


def check_published(world, device, within):
    """The device is online and its readings, its temperature and its info are right."""
    device.wait_availability("online", within)
    readings = [device.wait_reading(within).json()]
    for _ in range(2):
        seen = world.broker.messages.mark()
        readings.append(device.wait_reading(ANSWER, after=seen).json())
    for reading in readings:
        expect(reading["property"] == "temperature", f"a reading of {reading['property']}: {reading}")
        expect(reading["value"] == device.temperature, f"{device.name} has {device.temperature}: {reading}")
        expect(reading["unit"] == "°C", f"unit of {reading}")
        expect(reading["gateway"] == GATEWAY_ID, f"gateway of {reading}")
        expect(RFC3339.fullmatch(reading["time"]), f"time of {reading}")
        expect(reading.get("replayed") is not True, f"nothing was away: {reading}")

    everything = [message.json() for message in world.broker.on(device.topic("readings"))]
    sequences = [reading["sequence"] for reading in everything]
    first = sequences[0]
    expect(sequences == list(range(first, first + len(sequences))), f"sequences of {device.id}: {sequences}")
    expect(len({reading["run"] for reading in everything}) == 1, f"several runs: {everything}")
    expect(not any(message.retain for message in world.broker.on(device.topic("readings"))), "readings were retained")

    temperature = device.wait("temperature", ANSWER)
    expect(temperature.payload == str(device.temperature), f"{temperature}")
    expect(temperature.retain and temperature.qos == 1, f"not retained with QoS 1: {temperature}")
    device.wait_period(1000, ANSWER)

    info = device.wait("info", ANSWER)
    expect(info.retain, "info was not retained")
    info = info.json()
    expect(info["name"] == device.name, f"name of {info}")
    expect(info["identifier"] == device.address, f"identifier of {info}")
    expect(info["gateway"] == GATEWAY_ID, f"gateway of {info}")
    expect(info["profile"] == "microbit", f"profile of {info}")
    expect(-127 <= info["rssi"] <= 20, f"rssi of {info}")
    expect(RFC3339.fullmatch(info["connected_since"]), f"connected_since of {info}")
    return info


def find_by_prefix(world, count):
    world.start(microbits=count)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        check_published(world, device, count * CONNECT)

    world.microbits.ask("temperature", count - 1, value=-7)
    devices[-1].wait("temperature", ANSWER, lambda message: message.payload == "-7", what="-7")
    expect_only(world, devices)


def expect_only(world, devices):
    """No device has topics but these."""
    topics = {message.topic.split("/")[1] for message in world.broker.messages.since() if message.topic.startswith(BASE)}
    unknown = topics - {device.id for device in devices} - {"bridge"}
    expect(not unknown, f"topics of unknown devices: {unknown}")


def find_by_identifier(world, count):
    """One micro:bit more is there than is configured, and left alone."""
    world.start(microbits=count + 1)
    *devices, other = world.devices(id=lambda index, _: f"board-{index}")
    entries = [
        {"match": {"identifier": device.address}, "id": device.id, "name": f"Board {device.index}"}
        for device in devices
    ]
    world.start_gateway(entries)
    for device in devices:
        info = check_published(world, device, count * CONNECT)
        expect(info["label"] == f"Board {device.index}", f"label of {info}")
    expect_only(world, devices)
    expect(world.microbits.all()[other.index]["links"] == 0, "a micro:bit that matches no entry was connected")


@scenario(virtual_time=False)
def one_by_prefix(world):
    find_by_prefix(world, 1)


@scenario(virtual_time=False)
def three_by_prefix(world):
    find_by_prefix(world, 3)


@scenario()
def ten_by_prefix(world):
    find_by_prefix(world, 10)


@scenario()
def one_by_identifier(world):
    find_by_identifier(world, 1)


@scenario()
def three_by_identifier(world):
    find_by_identifier(world, 3)


@scenario(virtual_time=False)
def ten_by_identifier(world):
    find_by_identifier(world, 10)


@scenario()
def strangers_left_alone(world):
    world.start(microbits=1, strangers=3)
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    # Long enough for the scan to have met every advertiser many times (they advertise five times a second).
    for _ in range(30):
        device.wait_reading(ANSWER, after=world.broker.messages.mark())
    for stranger in world.microbits.strangers():
        expect(stranger["links"] == 0, f"the stranger {stranger['name']} was connected")
    expect_only(world, [device])


# Commands


def start_one(world, **entry):
    """The usual world with one micro:bit, online."""
    world.start()
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}} | entry])
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    device.wait_reading(CONNECT)
    return device


def intervals(world, device, count, after):
    """Seconds between `count` + 1 readings, by the gateway's own times."""
    times = []
    for _ in range(count + 1):
        mark = world.broker.messages.mark()
        text = device.wait_reading(ANSWER, after=mark).json()["time"]
        times.append(datetime.fromisoformat(text).timestamp())
    return [later - earlier for earlier, later in zip(times, times[1:])]


def expect_cadence(world, device, period):
    # The firmware uses a new period from the sample after next on.
    for _ in range(2):
        device.wait_reading(ANSWER, after=world.broker.messages.mark())
    found = median(intervals(world, device, 9, world.broker.messages.mark()))
    expect(abs(found - period) < 0.2 * period, f"readings come every {found:.3f} s, the period is {period} s")


@scenario(virtual_time=False)
def period_is_set_and_confirmed(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    device.set_period("200")
    result = device.wait_result("applied", ANSWER, after=mark)
    expect(result["requested"] == 200 and result["actual"] == 200, f"{result}")
    device.wait_period(200, ANSWER, after=mark)
    expect(world.microbits.ask("state")["period"] == 200, "the micro:bit holds another period")
    expect_cadence(world, device, 0.2)


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
    expect_cadence(world, device, 2.5)


@scenario()
def period_bounds(world):
    """Both ends are applied, what lies beyond is rejected and changes nothing."""
    device = start_one(world)
    for value in (1, 65535):
        mark = world.broker.messages.mark()
        device.set_period(str(value))
        result = device.wait_result("applied", ANSWER, after=mark)
        expect(result["actual"] == value, f"{result}")
        expect(world.microbits.ask("state")["period"] == value, "the micro:bit holds another period")
    for payload in ("0", "65536", "-1", "1.5", "soon", '{"value":"500"}'):
        mark = world.broker.messages.mark()
        device.set_period(payload)
        result = device.wait_result("rejected", ANSWER, after=mark)
        expect(result["reason"], f"no reason in {result}")
        expect(world.microbits.ask("state")["period"] == 65535, f"{payload} was written to the micro:bit")


@scenario()
def period_by_response_topic(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    properties = ["-D", "publish", "response-topic", "caller/answers", "-D", "publish", "correlation-data", "c7"]
    world.broker.publish(device.topic("period/set"), "", "-m", "750", *properties)
    answer = world.broker.wait("caller/answers", ANSWER, after=mark).json()
    expect(answer["status"] == "applied" and answer["actual"] == 750, f"{answer}")


@scenario()
def period_for_an_absent_microbit(world):
    """It is kept and applied on arrival."""
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


# Faults of micro:bits


def expect_return(world, device, after):
    device.wait_availability("online", RETURN, after=after)
    device.wait_reading(RETURN, after=world.broker.messages.mark())


@scenario()
def vanishes_and_returns(world):
    device = start_one(world)
    for absence in (2, 90):
        mark = world.broker.messages.mark()
        world.microbits.ask("vanish")
        device.wait_availability("offline", RETURN, after=mark)
        time.sleep(absence)  # of the story, not a wait for something: it is away that long
        back = world.broker.messages.mark()
        expect(not any(m.payload == "online" for m in world.broker.on(device.topic("availability"), mark)), "online while away")
        world.microbits.ask("return")
        expect_return(world, device, back)


@scenario()
def others_go_on_while_one_is_away(world):
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    away, *others = world.devices()
    for device in (away, *others):
        device.wait_availability("online", 3 * CONNECT)
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish", away.index)
    away.wait_availability("offline", RETURN, after=mark)
    for device in others:
        for _ in range(60):
            device.wait_reading(5, after=world.broker.messages.mark())
        expect(not world.broker.on(device.topic("availability"), mark), f"{device.id} went away too")
    mark = world.broker.messages.mark()
    world.microbits.ask("return", away.index)
    expect_return(world, away, mark)


@scenario()
def period_is_applied_again_after_reset(world):
    device = start_one(world)
    device.set_period("500")
    device.wait_result("applied", ANSWER)
    mark = world.broker.messages.mark()
    state = world.microbits.ask("reset")
    expect(state["period"] == 1000, f"the reset micro:bit forgot nothing: {state}")
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(world, device, mark)
    world.microbits.until(0, RETURN, period=500)
    expect_cadence(world, device, 0.5)


@scenario()
def configured_period_is_applied(world):
    device = start_one(world, period=3000)
    world.microbits.until(0, ANSWER, period=3000)
    device.wait_period(3000, ANSWER)


@scenario()
def microbit_hangs_up(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("disconnect")
    device.wait_availability("offline", RETURN, after=mark)
    expect_return(world, device, mark)


@scenario()
def silent_microbit_is_connected_again(world):
    device = start_one(world)
    links = world.microbits.ask("state")["links"]
    mark = world.broker.messages.mark()
    world.microbits.ask("silent", on=True)
    world.microbits.until(0, 120, connected=False)
    world.microbits.ask("silent", on=False)
    expect_return(world, device, mark)
    expect(world.microbits.ask("state")["links"] > links, "it was not connected again")


@scenario()
def wedged_microbit_is_connected_again(world):
    """It keeps its link and answers nothing."""
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.ask("wedged", on=True)
    world.microbits.ask("silent", on=True)
    world.microbits.until(0, 180, connected=False)
    device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.microbits.ask("wedged", on=False)
    world.microbits.ask("silent", on=False)
    device.wait_availability("online", 3 * RETURN, after=mark)
    device.wait_reading(RETURN, after=world.broker.messages.mark())


@scenario()
def deaf_microbit_is_tried_again(world):
    """It is heard, but takes no link at first."""
    world.start()
    world.microbits.ask("deaf", on=True)
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    # It advertises five times a second, and the kernel gives an attempt up after 4 s: this takes a few of them.
    world.microbits.until(0, 3 * RETURN, unheard=50)
    mark = world.broker.messages.mark()
    world.microbits.ask("deaf", on=False)
    expect_return(world, device, mark)


# Faults of the system


@scenario()
def adapter_off_and_on(world):
    world.start(microbits=2)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 2 * CONNECT)
    mark = world.broker.messages.mark()
    world.set_powered(False)
    for device in devices:
        device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.set_powered(True)
    for device in devices:
        expect_return(world, device, mark)
    expect(world.gateway.child.poll() is None, "the gateway ended")


@scenario()
def adapter_unplugged(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.unplug()
    device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.microbits = Microbits(1)
    expect_return(world, device, mark)


@scenario()
def bluetoothd_killed(world):
    world.start(microbits=2)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 2 * CONNECT)
    mark = world.broker.messages.mark()
    world.bluetoothd.kill(signal.SIGKILL)
    world.bluetoothd.wait_end(START)
    for device in devices:
        device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.start_bluetoothd()
    for device in devices:
        expect_return(world, device, mark)
    expect(world.gateway.child.poll() is None, "the gateway ended")


@scenario()
def gateway_starts_before_all_else(world):
    """Without bluetoothd, adapter and broker: it waits for them."""
    world.start_gateway(BY_PREFIX)
    time.sleep(20)  # of the story: nothing is there that long
    expect(world.gateway.child.poll() is None, "the gateway gave up")
    world.broker = Broker()
    time.sleep(5)
    world.start_bluetoothd(adapter=False)
    time.sleep(5)
    world.microbits = Microbits(1)
    device = world.devices()[0]
    device.wait_availability("online", RETURN)
    device.wait_reading(RETURN)


@scenario()
def gateway_killed_and_started_again(world):
    """Its will says so, and the new one takes over the link that it finds."""
    device = start_one(world)
    state = f"{BASE}/bridge/{GATEWAY_ID}/state"
    mark = world.broker.messages.mark()
    world.gateway.kill(signal.SIGKILL)
    world.gateway.wait_end(ANSWER)
    world.broker.wait(state, ANSWER, lambda message: message.payload == "offline", mark, "will")
    mark = world.broker.messages.mark()
    world.start_gateway(BY_PREFIX)
    expect_return(world, device, mark)
    expect(world.microbits.ask("state")["links"] == 1, "the link that was there was not used")


# The gateway's own end, and its other commands


@scenario(virtual_time=False)
def ends_in_order(world):
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 3 * CONNECT)
    mark = world.broker.messages.mark()
    begin = time.monotonic()
    world.gateway.kill(signal.SIGTERM)
    status = world.gateway.wait_end(10)
    lasted = time.monotonic() - begin
    expect(status == 0, f"exit status {status}")
    expect(lasted <= 5, f"it took {lasted:.1f} s to end")
    for device in devices:
        device.wait_availability("offline", 1, after=mark)
        world.microbits.until(device.index, 1, connected=False)
    message = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/state", 1, lambda m: m.payload == "offline", mark, "offline")
    expect(message.retain, "the bridge's state was not retained")


@scenario(virtual_time=False)
def scan_lists_microbits(world):
    world.microbits = Microbits(3, strangers=2)
    world.start_bluetoothd()
    status, output = world.run_gateway("scan", "--timeout", "5", "--json", within=30)
    expect(status == 0, f"exit status {status}: {output}")
    found = {item["identifier"]: item["name"] for item in json_items(output)}
    for microbit in world.microbits.all():
        expect(found.get(microbit["address"]) == microbit["name"], f"{microbit['name']} is not in {output}")
        expect(microbit["links"] == 0, "scan connected")
    status, output = world.run_gateway("scan", "--timeout", "5", within=30)
    expect(status == 0, f"exit status {status}: {output}")
    for microbit in world.microbits.all():
        expect(microbit["name"] in output and microbit["address"] in output, f"{microbit['name']} is not in {output}")


def json_items(text):
    """The objects of a JSON array, or of a text with one object a line."""
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line]
    return whole if isinstance(whole, list) else [whole]


@scenario()
def scan_without_services(world):
    status, output = world.run_gateway("scan", within=60, bus="unix:path=/nowhere")
    expect(status == 69, f"exit status {status} without a bus: {output}")
    status, output = world.run_gateway("scan", within=60)
    expect(status == 69, f"exit status {status} without bluetoothd: {output}")
    world.start_bluetoothd(adapter=False)
    status, output = world.run_gateway("scan", within=60)
    expect(status == 69, f"exit status {status} without an adapter: {output}")
