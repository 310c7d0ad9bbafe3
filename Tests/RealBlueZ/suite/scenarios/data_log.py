"""The data log of a micro:bit V2, over links that are lost."""

import json
import signal
import time

from journal import expect
from scenarios.common import ALL, BY_PREFIX, CONNECT, RETURN, scenario
from scenarios.pairing import PAIR, expect_paired, pair, pair_with_passkey, pairing_suggested
from scenarios.service_changed import BOTH
from world import BASE, GATEWAY_ID

CAPACITY = 118_780
PART = CAPACITY // 4
BRIDGE = f"{BASE}/bridge/{GATEWAY_ID}"


def call(world, method, *arguments):
    return world.microbits.ask("call", service="log", method=method, arguments=arguments)


def fill(world, text):
    for start in range(0, len(text), 10_000):
        call(world, "write", text[start : start + 10_000])


def request(world, device):
    mark = world.broker.messages.mark()
    world.broker.publish(f"{BRIDGE}/request/device/log", json.dumps({"id": device.id, "raw": True}))
    return mark


def log_text(world, first):
    size = min(PART * world.factor, CAPACITY)
    rows = (f"{n / 2:.2f},{(n * first) % 1000},ä{n}\n" for n in range(1, 20_000))
    text = "Time (seconds),value,näme\n"
    for row in rows:
        if len((text + row).encode()) > size:
            return text
        text += row
    raise ValueError


@scenario(debians=ALL)
def log_over_broken_links(world):
    """A quarter of a full one arrives byte for byte; how long that takes, and which notifications of the micro:bit are lost meanwhile."""
    world.start(services=["temperature", "log"])
    world.start_gateway(BY_PREFIX)
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    told = []
    for drops, text in ((True, log_text(world, 7)), (False, log_text(world, 13))):
        call(world, "clear")
        fill(world, text)
        before = world.microbits.ask("state")
        begin = time.monotonic()
        mark = request(world, device)
        answers = []
        while not answers:
            time.sleep(10)
            answers = world.broker.on(f"{BRIDGE}/response/device/log", mark)
            expect(time.monotonic() - begin < 3600, "it takes more than an hour")
            if drops and not answers:
                world.microbits.ask("disconnect")
                world.microbits.until(0, RETURN, connected=True)
        answer = answers[0].json()
        expect(answer["status"] == "ok", f"{answer}"[:500])
        expect(answer["data"]["csv"] == text and answer["data"]["bytes"] == len(text.encode()), "it is another text")
        after = world.microbits.ask("state")
        count = {name: after[name] - before[name] for name in ("links", "notified", "log_dropped", "log_ignored", "log_requests")}
        told.append(f"{len(text.encode())} bytes in {time.monotonic() - begin:.0f} s: {count}")
    print("; ".join(told))


@scenario(debians=ALL)
def rows_of_a_log_are_published_once(world):
    """Over links that are lost, resets, a log that is cleared, and restarts of the gateway, bluetoothd and the micro:bit."""
    world.start(services=["temperature", "log"])
    entry = [BY_PREFIX[0] | {"log": True}]
    world.start_gateway(entry)
    device = world.devices()[0]
    expected = []

    def add(first, last):
        call(world, "write", "".join(f"{n},{n}\n" for n in range(first, last + 1)))
        expected.extend(range(first, last + 1))

    def wait(n):
        device.wait("log", RETURN, lambda m: m.json()["values"]["n"] == n, what=f"row with {n}")

    call(world, "write", "Time (seconds),n\n")
    add(1, 50)
    wait(50)
    for step in range(3):
        add(51 + 10 * step, 60 + 10 * step)
        world.microbits.ask("disconnect")
        wait(60 + 10 * step)
    world.gateway.kill(signal.SIGTERM)
    world.gateway.wait_end(10)
    add(81, 90)
    world.start_gateway(entry)
    wait(90)
    world.restart_bluetoothd()
    add(91, 95)
    wait(95)
    world.microbits.ask("reset")
    call(world, "write", "0.5,96\n")
    expected.append(96)
    wait(96)
    call(world, "clear")
    call(world, "write", "n\n")
    call(world, "write", "97\n98\n")
    expected.extend([97, 98])
    wait(98)
    time.sleep(25)
    messages = [message.json() for message in world.broker.on(device.topic("log"))]
    found = [message["values"]["n"] for message in messages]
    expect(found == expected, f"{found}")
    expect([m["run"] for m in messages] == [1] * 95 + [2] + [3] * 2, "other runs")
    expect([m["row"] for m in messages] == [*range(1, 97), 1, 2], "other numbers")
    expect(not any(message.retain for message in world.broker.on(device.topic("log"))), "rows are retained")


def log_wants_pairing(world, mode, pair_it):
    """Nothing is read before the micro:bit is paired; after it, the whole log on request, and its rows."""
    world.start(services=["temperature", "log"])
    world.microbits.ask("security", mode=mode)
    call(world, "write", "Time (seconds),n\n1.00,1\n")
    world.start_gateway([BY_PREFIX[0] | {"log": True}])
    device = world.devices()[0]
    pairing_suggested(world)
    mark = request(world, device)
    answer = world.broker.wait(f"{BRIDGE}/response/device/log", 2 * PAIR, after=mark).json()
    expect(answer["status"] == "error" and "it probably requires pairing" in answer["error"], f"answered {answer}")
    expect(world.microbits.ask("state")["log_requests"] == 0, "it was asked without encryption")
    pair_it(world, device)
    expect_paired(world, device)
    device.wait("log", RETURN, lambda m: m.json()["values"]["n"] == 1, what="the row")
    mark = request(world, device)
    answer = world.broker.wait(f"{BRIDGE}/response/device/log", PAIR, after=mark).json()
    expect(answer.get("data", {}).get("csv") == "Time (seconds),n\n1.00,1\n", f"answered {answer}")
    # On the next link, with the bond.
    world.microbits.ask("disconnect")
    call(world, "write", "2.00,2\n")
    device.wait("log", RETURN, lambda m: m.json()["values"]["n"] == 2, what="the row after the next link")


@scenario(debians=BOTH)
def log_of_a_paired_micro_bit(world):
    log_wants_pairing(world, "just_works", pair)


@scenario(debians=BOTH)
def log_of_a_micro_bit_with_a_passkey(world):
    log_wants_pairing(world, "passkey", pair_with_passkey)
