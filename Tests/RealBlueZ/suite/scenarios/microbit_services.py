"""Each property of the micro:bit's profile except temperature and period, with the bytes that its firmware sends and
accepts (see ../../microbits/services.py)."""

import json

from journal import expect
from scenarios.common import ANSWER, RETURN, scenario
from scenarios.services import BOTH, command, start


def call(world, service, method, *arguments):
    return world.microbits.ask("call", service=service, method=method, arguments=arguments)


def wait_value(device, name, value, after=0, within=ANSWER):
    """On the property's topic, retained."""
    message = device.wait(name, within, lambda m: json.loads(m.payload) == value, after, f"{value}")
    expect(message.retain, f"{message} was not retained")


def wait_event(device, name, value, after=0):
    """On the property's topic, not retained."""
    message = device.wait(name, ANSWER, lambda m: m.json().get("value") == value, after, f"{value}")
    expect(not message.retain, f"{message} was retained")


def wait_text(device, name, value, after=0):
    """A state that is published as text without quotes."""
    device.wait(name, ANSWER, lambda m: m.payload == value, after, value)


def expect_result(result, requested, actual):
    expect(result["requested"] == requested and result["actual"] == actual, f"{result}")


@scenario(debians=BOTH)
def magnetometer(world):
    device = start(
        world,
        ["temperature", "magnetometer"],
        ["temperature", "magnetometer", "bearing", "magnetometer_period", "calibration"],
    )
    info = device.wait("info", ANSWER, lambda m: "model" in m.json(), what="model").json()
    expect(info["model"] == "BBC micro:bit V2" and info["firmware"] == "2.1.1", f"{info}")
    expect(info["serial"] == "1234567890", f"{info}")

    # nT in 16 bits: the firmware truncates 40000.
    call(world, "magnetometer", "set_field", 1000, -2000, 40000)
    wait_value(device, "magnetometer", {"x": 1000, "y": -2000, "z": 40000 - 65536})

    # The chip has 10, 20, 50 and 100 ms; until it is configured the value that was written is read back.
    expect_result(command(world, device, "magnetometer_period", "30", "adjusted"), 30, 50)
    wait_value(device, "magnetometer_period", 50)
    expect_result(command(world, device, "magnetometer_period", "100", "applied"), 100, 100)
    expect(world.microbits.ask("state")["magnetometer_period"] == 100, "the micro:bit has another period")

    call(world, "magnetometer", "set_bearing", 271)
    for result, word in ((3, "failed"), (2, "done")):
        call(world, "magnetometer", "set_calibration_result", result)
        mark = world.broker.messages.mark()
        command(world, device, "calibration", "start", "accepted")
        device.wait("calibration", 2 * ANSWER, lambda m: m.json()["event_type"] == word, mark, word)
        if word == "done":
            wait_value(device, "bearing", 271)
        else:
            # It reads 0, which is no bearing.
            expect(not world.broker.on(device.topic("bearing")), "there is a bearing before it is calibrated")
    expect(world.microbits.ask("state")["calibrations"] == 2, "it was calibrated another number of times")


@scenario()
def periods_of_a_v1(world):
    """Its chips have other periods, and its magnetometer changes its period only after a sample."""
    world.start(services=["temperature", "accelerometer", "magnetometer"], options=["--model", "1"])
    properties = ["temperature", "accelerometer_period", "magnetometer_period"]
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}, "properties": properties}])
    device = world.devices()[0]
    info = device.wait("info", RETURN, lambda m: "model" in m.json(), what="model").json()
    expect(info["model"] == "BBC micro:bit", f"{info}")
    expect_result(command(world, device, "accelerometer_period", "30", "adjusted"), 30, 80)
    expect_result(command(world, device, "magnetometer_period", "700", "adjusted"), 700, 800)
    expect_result(command(world, device, "magnetometer_period", "50", "applied"), 50, 50)
    expect(world.microbits.ask("state")["magnetometer_period"] == 50, "the micro:bit has another period")


@scenario()
def led_matrix_and_scroll_delay(world):
    heart = ".#.#./#####/#####/.###./..#.."
    device = start(world, ["temperature", "led"], ["temperature", "led", "scroll_delay"])
    wait_text(device, "led", "...../...../...../...../.....")
    wait_text(device, "scroll_delay", "120")
    expect_result(command(world, device, "led", heart, "applied"), heart, heart)
    expect(world.microbits.ask("state")["rows"] == [0x0A, 0x1F, 0x1F, 0x0E, 0x04], "other LEDs are on")
    command(world, device, "led", "a heart", "rejected")
    expect_result(command(world, device, "scroll_delay", "80", "applied"), 80, 80)
    expect(world.microbits.ask("state")["scrolling_delay"] == 80, "the micro:bit has another delay")
    command(world, device, "scroll_delay", "0", "rejected")

    # Both are set again after a reset.
    mark = world.broker.messages.mark()
    world.microbits.ask("reset")
    device.wait_availability("online", RETURN, after=mark)
    world.microbits.until(0, ANSWER, rows=[0x0A, 0x1F, 0x1F, 0x0E, 0x04], scrolling_delay=80)

    # The program draws the leftmost LED of the first row as well.
    call(world, "led", "draw", 0x10, 0, 0, 0, 0)
    dot = "...../...../..#../...../....."
    expect_result(command(world, device, "led", dot, "adjusted"), dot, "#" + dot[1:])


@scenario()
def pins(world):
    world.start(services=["temperature", "pins"])
    # P0 is a digital input, P19 an analogue one.
    entry = {
        "match": {"name_prefix": "BBC micro:bit"},
        "properties": ["temperature", "pins", "pwm"],
        "desired": {"input_pins": ["P0", "P19"], "analog_pins": ["P19"]},
    }
    world.start_gateway([entry])
    device = world.devices()[0]
    wait_value(device, "input_pins", ["P0", "P19"], within=RETURN)
    wait_value(device, "analog_pins", ["P19"])
    call(world, "pins", "connect", {"0": 255, "1": 255, "17": 128})
    wait_event(device, "pins", [{"pin": "P0", "value": 1}, {"pin": "P19", "value": 128}])
    call(world, "pins", "connect", {"0": 0})
    wait_event(device, "pins", [{"pin": "P0", "value": 0}])

    values = [{"pin": "P1", "value": 1}, {"pin": "P20", "value": 255}]
    command(world, device, "pins", json.dumps(values), "accepted")
    expect(world.microbits.ask("state")["outputs"] == {"1": 1, "18": 255}, "other pins were written")
    for refused in ([{"pin": "P17", "value": 1}], [{"pin": "P1", "value": 1}] * 11):
        command(world, device, "pins", json.dumps(refused), "rejected")
    pulses = [{"pin": "P1", "value": 512, "period": 20000}, {"pin": "P2", "value": 1024, "period": 100000}]
    command(world, device, "pwm", json.dumps(pulses), "accepted")
    found = world.microbits.ask("state")["pulses"]
    expect(found == {"1": [512, 20000], "2": [1024, 100000]}, f"{found}")
    command(world, device, "pwm", json.dumps(pulses + pulses), "rejected")

    # More inputs than a notification holds.
    inputs = [f"P{pin}" for pin in range(12)]
    expect_result(command(world, device, "input_pins", json.dumps(inputs), "applied"), inputs, inputs)
    call(world, "pins", "connect", {str(pin): 0 for pin in range(19)})
    mark = world.broker.messages.mark()
    call(world, "pins", "connect", {str(pin): 255 for pin in range(12)})
    wait_event(device, "pins", [{"pin": f"P{pin}", "value": 1} for pin in range(10)], mark)
    wait_event(device, "pins", [{"pin": f"P{pin}", "value": 1} for pin in (10, 11)], mark)

    mark = world.broker.messages.mark()
    world.microbits.ask("reset")
    device.wait_availability("online", RETURN, after=mark)
    world.microbits.until(0, ANSWER, input_pins=4095, analog_pins=1 << 17)


def expect_text_in_both_directions(world, device):
    call(world, "uart", "send", "temp:21\r\nlight:" + "9" * 30 + "\nno end")
    for line in ("temp:21", "light:" + "9" * 30, "no end"):
        wait_event(device, "uart_rx", line)
    text = "".join(chr(ord("a") + i % 26) for i in range(199)) + "\n"
    command(world, device, "uart_tx", json.dumps({"value": text}), "accepted")
    world.microbits.until(0, ANSWER, uart_read=text, uart_lost=0)
    writes = world.microbits.ask("state")["uart_writes"]
    expect([length for _, length in writes] == [20] * 10, f"{writes}")
    pauses = [later - earlier for (earlier, _), (later, _) in zip(writes, writes[1:])]
    expect(min(pauses) >= 0.03, f"written within {min(pauses)} s")


@scenario(debians=BOTH)
def uart(world):
    device = start(world, ["temperature", "uart"], ["temperature", "uart_rx", "uart_tx"])
    expect_text_in_both_directions(world, device)
    rejected = command(world, device, "uart_tx", "x" * 513, "rejected")
    expect("511" in rejected["reason"], f"{rejected}")
    # If the program does not read, text that does not fit into its buffer is lost without notice.
    call(world, "uart", "set_program_reads", False)
    command(world, device, "uart_tx", "y" * 100, "accepted")
    world.microbits.until(0, ANSWER, uart_lost=41)


@scenario()
def uart_in_nordic_order(world):
    """The firmware may have the two characteristics swapped: their flags show which is which."""
    world.start(services=["temperature", "uart_nordic"])
    properties = ["temperature", "uart_rx", "uart_tx"]
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}, "properties": properties}])
    device = world.devices()[0]
    device.wait_availability("online", RETURN)
    call(world, "uart_nordic", "send", "21\n")
    wait_event(device, "uart_rx", "21")
    command(world, device, "uart_tx", "on", "accepted")
    world.microbits.until(0, ANSWER, uart_read="on\n")


@scenario()
def events(world):
    gestures, clicks = {"type": 13, "value": 0}, {"type": 1, "value": 3}
    world.start(services=["temperature", "events"])
    call(world, "events", "require", [1001, 0], [1002, 5])
    entry = {
        "match": {"name_prefix": "BBC micro:bit"},
        "properties": ["temperature", "event", "send_event", "event_requirement"],
        "desired": {"event_filter": [gestures, clicks]},
    }
    world.start_gateway([entry])
    device = world.devices()[0]
    device.wait_availability("online", RETURN)
    wait_value(device, "event_requirement", [{"type": 1001, "value": 0}])
    # A V2 accepts one record per write.
    wanted = [[13, 0], [1, 3]]
    world.microbits.until(0, ANSWER, events_wanted=wanted)
    for kind, value in ((1, 1), (13, 11), (1, 3)):
        call(world, "events", "raise_event", kind, value)
    wait_event(device, "event", [{"type": 13, "value": 11}])
    wait_event(device, "event", [{"type": 1, "value": 3}])
    expect(len(world.broker.on(device.topic("event"))) == 2, "an event that is not wanted")
    command(world, device, "send_event", json.dumps({"type": 1001, "value": 2}), "accepted")
    expect(world.microbits.ask("state")["events_received"] == [[1001, 2]], "another event was raised")

    # The firmware forgets them with the link.
    mark = world.broker.messages.mark()
    world.microbits.ask("disconnect")
    device.wait_availability("online", RETURN, after=mark)
    world.microbits.until(0, ANSWER, events_wanted=wanted)
    command(world, device, "event_filter", json.dumps([{"type": 5, "value": 0}]), "accepted")
    expect(world.microbits.ask("state")["events_wanted"] == [*wanted, [5, 0]], "another filter")
