"""The gateway finds its micro:bits, publishes their values, and does not connect to other peripherals."""

from journal import expect
from scenarios.common import ANSWER, BY_PREFIX, CONNECT, expect_only, scenario
from world import GATEWAY_ID, RFC3339, START


def check_published(device, within):
    """The device is online and its readings, its temperature, its period and its info are right."""
    device.wait_availability("online", within)
    check_readings(device, device.wait_readings(3, within, after=0))

    temperature = device.wait("temperature", ANSWER)
    expect(temperature.payload == str(device.temperature), f"{temperature}")
    expect(temperature.retain and temperature.qos == 1, f"not retained with QoS 1: {temperature}")
    device.wait_period(1000, ANSWER)

    info = device.wait("info", ANSWER)
    expect(info.retain, "info was not retained")
    info = info.json()
    expect(info["bluetooth_name"] == device.name, f"bluetooth_name of {info}")
    expect(info["identifier"] == device.address, f"identifier of {info}")
    expect(info["owner"] == GATEWAY_ID, f"owner of {info}")
    expect(info["profile"] == "microbit", f"profile of {info}")
    expect(-127 <= info["rssi"] <= 20, f"rssi of {info}")
    expect(RFC3339.fullmatch(info["connected_since"]), f"connected_since of {info}")
    return info


def check_readings(device, readings):
    for reading in readings:
        expect(reading["property"] == "temperature", f"a reading of {reading['property']}: {reading}")
        expect(reading["value"] == device.temperature, f"{device.name} has {device.temperature}: {reading}")
        expect(reading["unit"] == "°C", f"unit of {reading}")
        expect(reading["gateway"] == GATEWAY_ID, f"gateway of {reading}")
        expect(RFC3339.fullmatch(reading["time"]), f"time of {reading}")
        expect(reading.get("replayed") is not True, f"there was no outage: {reading}")
    sequences = [reading["sequence"] for reading in readings]
    first = sequences[0]
    expect(sequences == list(range(first, first + len(sequences))), f"sequences of {device.id}: {sequences}")
    expect(len({reading["run"] for reading in readings}) == 1, f"several runs: {readings}")


def find_by_prefix(world, count):
    world.start(microbits=count)
    world.start_gateway(BY_PREFIX, bluetooth={"links": count})
    devices = world.devices()
    for device in devices:
        check_published(device, START + count * CONNECT)

    world.microbits.ask("temperature", count - 1, value=-7)
    devices[-1].wait("temperature", ANSWER, lambda message: message.payload == "-7", what="-7")
    expect_only(world, devices)


def find_by_identifier(world, count):
    """One micro:bit is not configured: the gateway does not connect to it."""
    world.start(microbits=count + 1)
    *devices, other = world.devices(id=lambda index, _: f"board-{index}")
    entries = [
        {"match": {"identifier": device.address}, "id": device.id, "name": f"Board {device.index}"}
        for device in devices
    ]
    world.start_gateway(entries, bluetooth={"links": count})
    for device in devices:
        info = check_published(device, START + count * CONNECT)
        expect(info["name"] == f"Board {device.index}", f"name of {info}")
    expect_only(world, devices)
    expect(
        world.microbits.all()[other.index]["links"] == 0, "a micro:bit that matches no entry was connected"
    )


@scenario(virtual_time=False, debians=(12, "forky"))
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
    # Long enough for the scan to report every advertiser many times: they advertise five times a second.
    device.wait_readings(30, 2 * 30)
    for stranger in world.microbits.strangers():
        expect(stranger["links"] == 0, f"the stranger {stranger['name']} was connected")
    expect_only(world, [device])
