"""Thirty micro:bits that a wired one hears by radio, and seven that are connected."""

import json
import re
import statistics
import time

from journal import Failed, expect
from scenarios import BUTTON_A, CONNECT, EVERY, PROPERTY, figures, scenario

LIMIT = 300
"""The most that a value may take to the page, in ms."""
WATCH = """(() => {
  window.shown = [];
  window.presses = [];
  const happened = take.happened, last = new Map();
  take.happened = (data) => {
    if (data.value === 'press_start') window.presses.push([data.device, Date.now()]);
    happened(data);
  };
  (function look() {
    for (const link of document.querySelectorAll('.tile a[href^="#m/"]')) {
      const id = link.getAttribute('href').slice(3), text = link.closest('.tile').textContent;
      if (last.get(id) !== text) window.shown.push([id, last.set(id, text).get(id), Date.now()]);
    }
    window.shown.splice(0, window.shown.length - 2000);
    requestAnimationFrame(look);
  })();
})()"""


def now():
    return time.time() * 1000


def radio(room, action=None, **keys):
    return room.microbits.ask("radio", **({"action": action} if action else {}), **keys)


def prints(room, line):
    radio(room, "write", hex=(line + "\r\n").encode().hex())


def shown(page, id, text, within=CONNECT):
    """When the tile has shown the text first, since it is watched."""
    return page.until(f"window.shown.find(([id, text]) => id === '{id}' && text.includes('{text}'))?.[2]", within)


def print_until_shown(room, page, name, numbers):
    """Prints one after the other as a value, until the page shows it: the micro:bit's own next value may come before the page
    is told of it. Returns when that was printed and shown, and how many were not shown."""
    for replaced, number in enumerate(numbers):
        begin = now()
        prints(room, f"{name},temp,{number}")
        try:
            return begin, shown(page, name, str(number), 2), replaced
        except Failed:
            pass
    raise Failed(f"of {name}, none of {list(numbers)} was shown")


def summary(what, delays):
    figures.append(f"{what}: median {statistics.median(delays):.0f} ms, most {max(delays):.0f} ms")
    expect(max(delays) < LIMIT, f"{what}: {sorted(delays)}")


def readings(room, name):
    """How many of them the gateway has of all senders."""
    return sum(p["count"] for d in room.devices() for p in d["properties"] if p["name"] == name)


def all_online(room, page):
    page.until("ask('permit_join', { time: 600 }).then(({ error }) => !error)")
    page.until("$('.bar p')?.textContent === '37 of 37 online'", CONNECT)
    page.until("ask('permit_join', { time: 0 }).then(({ error }) => !error)")
    page.run(WATCH)
    names = radio(room)["names"]
    linked = [d["id"] for d in room.devices() if d["id"] not in names]
    expect(len(names) == 30 and len(linked) == 7, f"{len(names)} by radio, {len(linked)} connected")
    return names


@scenario(
    "--services", "temperature,buttons", "--period", "1000", devices=7, links=7, configuration=EVERY,
    radio="class_by_radio,presses=2,loss=2",
)
def values_of_a_class_by_radio(room):
    page = room.page()
    names = all_online(room, page)
    delays, replaced = [], 0
    for index, name in enumerate(names):
        begin, end, more = print_until_shown(room, page, name, range(100 + index, 600, 100))
        delays.append(end - begin)
        replaced += more
    expect(replaced <= 15, f"{replaced} values were not shown")
    summary(f"values of 30 by radio, {replaced} of which were replaced by the next one", delays)
    delays = []
    for index in range(7):
        address = room.microbits.ask("period", index)["address"]
        id = next(d["id"] for d in room.devices() if d["identifier"] == address)
        reading = PROPERTY.format(id, "temperature")
        count = page.run(f"{reading}.then((p) => p.count)")
        last = page.until(f"{reading}.then((p) => p.count > {count} && Date.parse(p.time))")
        # The next reading, a period later, is the first one with this value.
        room.microbits.ask("temp", index, v=50 + index)
        delays.append(shown(page, id, str(50 + index)) - last - 1000)
        mark, begin = page.run("window.presses.length"), now()
        room.microbits.ask("value", index, characteristic=BUTTON_A, hex="01")
        press = f"window.presses.slice({mark}).find(([id]) => id === '{id}')?.[1]"
        delays.append(page.until(press) - begin)
        room.microbits.ask("value", index, characteristic=BUTTON_A, hex="00")
    summary("values and presses of 7 connected ones", delays)
    before = radio(room), readings(room, "values/temp") + readings(room, "button_a")
    time.sleep(20)
    after = radio(room), readings(room, "values/temp") + readings(room, "button_a")
    sent, printed = (after[0][key] - before[0][key] for key in ("sent", "printed"))
    lost = {key: after[0][key] - before[0][key] for key in ("collided", "lost", "overrun", "dropped")}
    read = after[1] - before[1]
    figures.append(f"in 20 s {sent} packets sent, {printed} printed, {read} read; {lost}")
    expect(abs(printed - read) <= 10 and lost["dropped"] == 0, "what was printed was not read")
    expect(sent - printed <= sum(lost.values()) + 5, "packets are missing that nothing has lost")


@scenario(
    "--services", "temperature,buttons", "--period", "1000", devices=7, links=7, configuration=EVERY,
    radio="class_by_radio,presses=0",
)
def quiz_by_radio(room):
    page = room.page()
    names = all_online(room, page)
    delays, missing = [], 0
    for _ in range(5):
        begin, mark = now(), page.run("window.presses.length")
        before = radio(room)
        order = radio(room, "press", all=True, ms=50)
        time.sleep(1)
        presses = page.run(f"window.presses.slice({mark})")
        after = radio(room)
        got = [id for id, _ in presses]
        expect(len(set(got)) == len(got), f"a press was told twice: {got}")
        expect(got == [name for name in order if name in got], f"another order than {order}: {got}")
        lost = sum(after[key] - before[key] for key in ("collided", "overrun"))
        expect(len(names) - len(got) <= lost, f"{len(got)} presses, and {lost} packets were lost")
        missing += len(names) - len(got)
        delays += [moment - begin - 50 * order.index(id) / 30 for id, moment in presses]
    summary("presses of 30 within 50 ms", delays)
    figures.append(f"{missing} of 150 presses were lost in the air, or as the receiver was busy")


@scenario(
    "--services", "temperature", "--period", "1000", devices=7, links=7, configuration=EVERY,
    radio="class_by_radio,presses=0",
)
def receiver_is_pulled_ten_times(room):
    page = room.page()
    names = all_online(room, page)
    took = []
    for number in range(100, 110):
        radio(room, "unplug")
        page.until("ask('health').then(({ data }) => JSON.stringify(data).includes('not plugged in'))")
        radio(room, "plug")
        begin = now()
        page.until("fetch('api/devices').then((a) => a.json()).then((all) => all.length === 37)")
        while not radio(room)["open"]:
            expect(now() < begin + CONNECT * 1000, "it is not opened again")
            time.sleep(0.05)
        # The first line may be half an old one.
        prints(room, "half")
        took.append(print_until_shown(room, page, names[0], range(number, 600, 100))[1] - begin)
    figures.append(f"from plugging in to a value: median {statistics.median(took):.0f} ms, most {max(took):.0f} ms")
    page.until("$('.bar p').textContent === '37 of 37 online'")


PLAY = """(() => {
  window.lines = [];
  window.bits = [];
  window.play = async (letters, serial, program) => {
    const bit = { on: {}, loops: [], time: 1000, temperature: 21 };
    let received;
    const size = (text, most) => { if (new Blob([text]).size > most) throw new Error(`too long: ${text}`); return text; };
    const send = (packet) => Promise.all(bits.filter((other) => other !== bit).map((other) => other.hear({ t: bit.time, s: serial, ...packet })));
    bit.hear = (packet) => { received = packet; return packet.v === undefined ? bit.on.text?.(packet.n) : bit.on.value?.(packet.n, packet.v); };
    bits.push(bit);
    await program({
      radio: {
        setGroup() {}, onReceivedString(f) { bit.on.text = f; }, onReceivedValue(f) { bit.on.value = f; }, onReceivedNumber() {},
        sendString: (text) => send({ n: size(text, 19) }), sendValue: (n, v) => send({ n: size(n, 8), v }),
        writeReceivedPacketToSerial() { lines.push(JSON.stringify(received)); },
      },
      input: { onButtonPressed(button, f) { bit.on[button] = f; }, temperature: () => bit.temperature, runningTime: () => bit.time },
      basic: { forever(f) { bit.loops.push(f); }, async pause() {}, showIcon(icon) { bit.icon = icon; }, clearScreen() { bit.icon = null; } },
      control: { deviceName: () => letters }, pins: { servoWritePin(pin, angle) { bit.angle = angle; } }, randint: (least) => least,
      serial: { writeLine(line) { lines.push(line); }, setRxBufferSize() {}, delimiters: () => '', onDataReceived(_, f) { bit.on.line = f; }, readUntil: () => bit.line },
      Button: { A: 'A' }, Delimiters: {}, IconNames: { Heart: 'heart' }, AnalogPin: {},
    });
    return bits.length - 1;
  };
})()"""
"""Plays MakeCode's programs: what one sends, all others hear. A text of more than 19 bytes is an error, as MakeCode cuts it."""
MAKECODE = "radio, input, basic, control, pins, randint, serial, Button, Delimiters, IconNames, AnalogPin"


@scenario("--services", "temperature", devices=1, configuration=EVERY, radio="class_by_radio,senders=1,every=86400000")
def programs_of_the_guide(room):
    """What docs/radio.md tells to paste does what it says there."""
    with open("docs/radio.md") as file:
        receiver, sender, with_numbers, forwards, servo, quiz, go = re.findall(r"```js\n(.*?)```", file.read(), re.DOTALL)
    page = room.page()
    page.until("ask('permit_join', { time: 600 }).then(({ error }) => !error)")
    page.run(PLAY)

    def play(letters, serial, *programs):
        text = "\n".join(programs).replace("function (", "async function (").replace("basic.pause(", "await basic.pause(")
        return page.run(f"play({json.dumps(letters)}, {serial}, async ({{ {MAKECODE} }}) => {{ {text} }})")

    def do(bit, what):
        """Prints what the receiver's program prints meanwhile."""
        page.run(f"Promise.resolve(((bit) => {what})(bits[{bit}]))")
        lines = page.run("lines.splice(0)")
        for line in lines:
            prints(room, line)
        return lines

    def value(id, name, expected):
        page.until(f"devices.get('{id}')?.props.get('values/{name}')?.d.value === {expected}", CONNECT)

    wired, window, pupil = play("gozot", 1, receiver, forwards, go), play("vopez", 2, sender, servo), play("zotut", 3, quiz)
    # The first line may be half an old one. One that was damaged may name another micro:bit, but hardly two the same.
    for _ in range(3):
        expect(do(window, "bit.loops[0]()") == ["vopez,temp,21"], "another temperature was printed")
    value("vopez", "temp", 21)
    do(window, "bit.loops[1]()")
    value("vopez", "servo", 90)
    do(window, "bit.on.A()")
    page.until("devices.get('vopez').props.get('button_a')?.log[0]?.value === 'press_start'")
    expect(page.run("devices.get('vopez').props.get('button_a').log.length") == 1, "one press is told twice")
    expect(do(wired, "(bit.line = 'hello', bit.on.line())") == ["forwards"], "it does not say that it forwards")
    do(wired, "(bit.line = 'vopez>servo:45', bit.on.line())")
    value("vopez", "servo", 45)
    expect(page.run(f"bits[{window}].angle") == 45, "the servo was not set")
    do(wired, "bit.on.A()")
    expect(page.run(f"bits[{pupil}].icon") == "heart", "it has not heard go")
    lines = do(pupil, "(bit.time += 1234, bit.on.A())")
    expect(lines == 5 * ["zotut,quiz,1234"], f"{lines}")
    value("zotut", "quiz", 1234)
    expect(do(pupil, "bit.on.A()") == [], "it was counted twice")
    # The sender's name is not in its packets.
    page.run("(bits.length = 0)")
    play("gozot", 1, with_numbers)
    nameless = play("tatap", -1142702066, "radio.setGroup(42); basic.forever(function () { radio.sendValue('temp', input.temperature()) })")
    for _ in range(2):
        do(nameless, "(bit.temperature = 23, bit.time += 1000, bit.loops[0]())")
    page.until("[...devices.values()].some((bit) => bit.props.get('values/temp')?.d.value === 23)", CONNECT)
    # What is not heard by radio is not missing because Bluetooth is off.
    room.microbits.ask("power", on=False)
    page.until("bluetoothIsOff()", CONNECT)
    expect(page.run("stateOf({ d: { ...devices.get('vopez').d, online: false } })") == "not heard", "Bluetooth is said to be off")
