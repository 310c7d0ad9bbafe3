"""microbit-peripheral on a second adapter of the same bluetoothd, bridged by the gateway on the first one.

With kernel 7.2, bluetoothd 5.66 at both ends uses a second ATT channel, and mixes up the answers on the two: so Debian 12
has its own kernel here.
"""

import json
import signal

from journal import expect
from scenarios.common import ALL, ANSWER, CONNECT, RETURN, scenario
from world import Device

BOTH = (12, 13)
ADDRESS = "02:00:5E:00:53:02"
COUNTER = {
    "requires": ["1111"],
    "properties": {
        "add": {
            "service": "1111",
            "characteristic": "2222",
            "access": ["write"],
            "write": "request",
            "kind": "event",
            "type": "uint8",
        }
    },
}


def start(world, arguments, entry, **more):
    """Starts a peripheral with these arguments; returns its device at the gateway."""
    world.start(microbits=0, options=("--second-adapter",))
    peripheral = world.start_peripheral(*arguments)
    expect(peripheral.said(ADDRESS), "it serves another adapter")
    world.start_gateway([entry], **more)
    state = {"name": "", "address": ADDRESS, "temperature": None}
    device = Device(world, 0, state, ADDRESS.replace(":", "").lower())
    device.wait_availability("online", CONNECT)
    return peripheral, device


def command(world, device, name, payload, status):
    mark = world.broker.messages.mark()
    world.broker.publish(device.topic(f"{name}/set"), payload)
    return device.wait(
        f"{name}/result", ANSWER, lambda message: message.json()["status"] == status, mark, status
    ).json()


def expect_end(peripheral):
    peripheral.kill(signal.SIGTERM)
    expect(peripheral.wait_end(RETURN) == 0, "it did not end with status 0")


@scenario(debians=ALL, old_kernel=(12,))
def peripheral_as_a_microbit(world):
    properties = ["temperature", "period", "button_a", "accelerometer", "led_text", "uart_rx"]
    entry = {"match": {"name_prefix": "BBC micro:bit"}, "properties": properties}
    peripheral, device = start(world, [], entry)
    peripheral.write_line("temperature 37")
    device.wait("temperature", ANSWER, lambda message: message.payload == "37")
    device.wait("info", ANSWER, lambda message: message.json().get("model") == "BBC micro:bit V2", what="model")
    names = {message.json().get("name") for message in world.broker.on(device.topic("info"))}
    expect(names <= {"BBC micro:bit [zugev]"}, f"{names}")

    result = command(world, device, "period", "250", "applied")
    expect(result["actual"] == 250, f"{result}")
    peripheral.wait_line("period 250", ANSWER)
    device.wait_readings(10, ANSWER)

    mark = world.broker.messages.mark()
    for value in ("press_start", "press_end"):
        peripheral.write_line(f"button_a {value}")
        device.wait("button_a", ANSWER, lambda message: message.json()["event_type"] == value, mark)
    peripheral.write_line('accelerometer {"x":-160,"y":4,"z":-1020}')
    device.wait("accelerometer", ANSWER, lambda message: message.json() == {"x": -160, "y": 4, "z": -1020}, mark)
    peripheral.write_line("uart_rx a line that is longer than one packet")
    line = "a line that is longer than one packet"
    device.wait("uart_rx", ANSWER, lambda message: message.json()["value"] == line, mark)
    command(world, device, "led_text", "Hello", "accepted")
    peripheral.wait_line("led_text Hello", ANSWER)

    peripheral.write_line("temprature 20")
    peripheral.wait_line("did you mean temperature?", ANSWER)
    expect_end(peripheral)
    device.wait_availability("offline", RETURN, after=mark)


@scenario(debians=BOTH, old_kernel=(12,))
def peripheral_as_a_counter(world):
    """A write of any length but one byte is refused with an error."""
    with open("/out/counter.json", "w") as file:
        json.dump({"counter": COUNTER}, file)
    raw = json.loads(json.dumps(COUNTER))
    raw["properties"]["add"]["type"] = "bytes"
    peripheral, device = start(
        world,
        ["--profile", "/out/counter.json"],
        {"match": {"service": "1111"}, "profile": "raw"},
        profiles={"raw": raw},
    )
    command(world, device, "add", "05", "accepted")
    peripheral.wait_line("add 5", ANSWER)
    result = command(world, device, "add", "0102", "failed")
    # As bluetoothd calls the ATT error 0x0D.
    expect("Invalid Length" in result["reason"], f"{result}")
    command(world, device, "add", "ff", "accepted")
    peripheral.wait_line("add 255", ANSWER)
    expect(not peripheral.said("add 1"), "a write of two bytes was taken")
    expect_end(peripheral)


@scenario(debians=BOTH, old_kernel=(12,))
def peripheral_after_restarts(world):
    """It is served again after a restart of bluetoothd and of its adapter."""
    entry = {"match": {"name_prefix": "BBC micro:bit"}, "properties": ["temperature"]}
    peripheral, device = start(world, ["--generate", "temperature=ramp:10:30:1@100"], entry)
    device.wait_readings(2, CONNECT)
    mark = world.broker.messages.mark()
    world.restart_bluetoothd()
    device.wait_availability("online", RETURN, after=mark)
    device.wait_readings(2, RETURN)
    mark = world.broker.messages.mark()
    world.set_powered(False, "hci1")
    device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.set_powered(True, "hci1")
    device.wait_availability("online", RETURN, after=mark)
    values = {reading["value"] for reading in device.wait_readings(5, RETURN)}
    expect(len(values) > 2, f"the temperature stays at {values}")
    expect_end(peripheral)
