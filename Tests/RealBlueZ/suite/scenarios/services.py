"""Services of the micro:bit: buttons, accelerometer and LED text; see also microbit_services.py."""

import json
import time

from journal import expect
from scenarios.common import ALL, ANSWER, CONNECT, scenario

BOTH = (12, 13)


def start(world, services, properties):
    world.start(services=services)
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}, "properties": properties}])
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    return device


def command(world, device, name, payload, status):
    mark = world.broker.messages.mark()
    world.broker.publish(device.topic(f"{name}/set"), payload)
    return device.wait(
        f"{name}/result", ANSWER, lambda message: message.json()["status"] == status, mark, f"{status}"
    ).json()


def reading(world, device):
    """Waits for a temperature from now on."""
    mark = world.broker.messages.mark()
    device.wait("readings", ANSWER, lambda message: message.json()["property"] == "temperature", mark)


@scenario(debians=BOTH)
def buttons_are_events(world):
    """A micro:bit that is configured with only its buttons, and sends nothing for a long time."""
    device = start(world, ["buttons"], ["button_a", "button_b"])
    mark = world.broker.messages.mark()
    for button, value in (("a", 1), ("b", 1), ("a", 2), ("a", 0), ("b", 0)):
        world.microbits.ask("button", button=button, v=value)
    device.wait("button_b", ANSWER, lambda message: message.json()["event_type"] == "press_end", mark)
    types = [message.json()["event_type"] for message in world.broker.on(device.topic("button_a"), mark)]
    expect(types == ["press_start", "long_press_start", "press_end"], f"{types}")
    time.sleep(180)  # no button is pressed during this time
    expect(not [m for m in world.broker.on(device.topic("availability"), mark)], "it went offline")
    mark = world.broker.messages.mark()
    world.microbits.ask("button", button="a", v=1)
    device.wait("button_a", ANSWER, lambda message: message.json()["event_type"] == "press_start", mark)


@scenario(debians=ALL)
def services_change_on_a_link(world):
    """The buttons of a micro:bit are removed and added by Service Changed: its link and its temperature continue."""
    device = start(world, ["temperature", "buttons"], ["temperature", "button_a"])
    mark = world.broker.messages.mark()
    world.microbits.ask("serve", services=["temperature"], changed=(0x0001, 0xFFFF))
    time.sleep(10)  # bluetoothd discovers the services again
    reading(world, device)
    world.microbits.ask("serve", services=["temperature", "buttons"], changed=(0x0001, 0xFFFF))
    time.sleep(10)
    world.microbits.ask("button", button="a", v=1)
    device.wait("button_a", ANSWER, lambda message: message.json()["event_type"] == "press_start", mark)
    reading(world, device)
    expect(not [m for m in world.broker.on(device.topic("availability"), mark)], "it went offline")


@scenario(debians=BOTH)
def accelerometer_and_its_period(world):
    device = start(
        world,
        ["temperature", "accelerometer"],
        ["temperature", "period", "accelerometer", "accelerometer_period"],
    )
    mark = world.broker.messages.mark()
    world.microbits.ask("acceleration", value=[-160, 4, -1020])
    device.wait("accelerometer", ANSWER, lambda message: message.json() == {"x": -160, "y": 4, "z": -1020}, mark)
    result = command(world, device, "accelerometer_period", "30", "adjusted")
    expect(result["requested"] == 30 and result["actual"] == 40, f"{result}")
    result = command(world, device, "accelerometer_period", "100", "applied")
    expect(result["actual"] == 100, f"{result}")
    rejected = command(world, device, "accelerometer_period", "1", "rejected")
    expect("smallest" in rejected["reason"], f"{rejected}")


@scenario(debians=BOTH)
def led_text_is_written_once(world):
    device = start(world, ["temperature", "led"], ["temperature", "led_text"])
    command(world, device, "led_text", "Hello", "accepted")
    command(world, device, "led_text", json.dumps({"value": "x" * 21}), "rejected")
    texts = world.microbits.ask("state")["texts"]
    expect(texts == ["Hello"], f"{texts}")
