"""What the page has to do. A scenario is a function with a classroom."""

import functools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request

from classroom import SERVICES, Classroom
from journal import Failed, expect
from processes import START

all = {}
figures = []
"""What was measured, to be printed."""

CONNECT = 60
UART = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
LED, LED_TEXT, BUTTON_A, ACCELEROMETER = (
    f"e95d{n}-251d-470a-a062-fa1922dfa9a8" for n in ("7b77", "93ee", "da90", "ca4b")
)
PROPERTY = (
    "fetch('api/devices').then((a) => a.json())"
    ".then((all) => all.find((d) => d.id === '{}').properties.find((p) => p.name === '{}'))"
)
"""What the gateway says of a property, in the browser."""
PRESS = "0e111f1111"
"""The letter A on the LEDs: it waits for a press."""
STREAMS = "fetch('metrics').then((a) => a.text()).then((text) => text.includes('microbit_gateway_http_streams {}\\n'))"


def scenario(*options, name=None, **keys):
    """Options of the simulator; `devices` and `configuration` of the classroom."""

    def add(function):
        function.room = functools.partial(_room, options=options, keys=keys)
        all[name or function.__name__] = function
        return function

    return add


def _room(folder, programs, options, keys):
    return Classroom(folder, programs, *(options or ("--services", SERVICES)), **keys)


def online(page, *names):
    for name in names or ("Window", "Door", "Garden"):
        page.until(f"state('{name}').includes('connected') && /\\d/.test(value('{name}'))", CONNECT)


# What is shown


@scenario()
def shows_values(room):
    page = room.page()
    online(page)
    expect(page.run("value('Window')").endswith("°C"), "the value has no unit")
    expect(page.run("$('.top .quiet', tile('Window')).textContent") == "Kitchen", "the area is not shown")
    expect(page.run("$('h1').textContent") == "Classroom", "the gateway's area is not the heading")
    for word in ("failed", "constructor"):
        expect(page.run(f"show('{word}', {{ type: 'choice' }})") == word, f"{word} is not shown as it is")
    for part in (".mark", ".dot", ".signal"):
        expect(page.run(f"$('{part}', tile('Window')).getBoundingClientRect().width > 9"), f"{part} is not seen")
    page.until("$('.spark path', tile('Window')).getAttribute('d')?.includes('L')")
    page.until("tile('Window').innerText.includes('lies flat') || tile('Window').innerText.includes('tilted')")
    room.microbits.ask("value", 0, characteristic=BUTTON_A, hex="01")
    page.until("/Button A\\s+pressed/.test(tile('Window').innerText) && $('.press.down', tile('Window'))")
    room.microbits.ask("value", 0, characteristic=BUTTON_A, hex="00")
    page.until("/Button A\\s+released/.test(tile('Window').innerText) && !$('.press.down', tile('Window'))")


@scenario("--services", "temperature", "--period", "500")
def blinks_and_is_quick(room):
    page = room.page()
    online(page)
    page.run(
        """(() => {
          window.blinks = 0;
          window.shown = [];
          const isNew = ({ oldValue, target }) => !oldValue?.includes('lit') && target.classList.contains('lit');
          new MutationObserver((all) => { window.blinks += all.filter(isNew).length; })
            .observe($('.mark', tile('Window')), { attributes: true, attributeOldValue: true });
          new MutationObserver(() => window.shown.push([parseFloat(value('Window')), Date.now()]))
            .observe($('.hero .value', tile('Window')), { subtree: true, childList: true, characterData: true });
        })()"""
    )
    reading = PROPERTY.format("window", "temperature")
    first = count = page.run(f"{reading}.then((p) => p.count)")
    delays = []
    for temperature in range(30, 50):
        count, last = page.until(f"{reading}.then((p) => p.count > {count} && [p.count, Date.parse(p.time)])")
        # The next reading, a period later, is the first one with this value.
        room.microbits.ask("temp", 0, v=temperature)
        moment = page.until(f"window.shown.find(([value]) => value === {temperature})?.[1]")
        delays.append(moment - last - 500)
    median = statistics.median(delays)
    figures.append(f"from the notification to the page: median {median:.0f} ms, most {max(delays):.0f} ms")
    expect(max(delays) < 200, f"a value was shown only after {max(delays)} ms")
    arrived = property_of(room, "window", "temperature")["count"] - first
    page.until(f"window.blinks >= {arrived}")
    blinks = page.run("window.blinks")
    figures.append(f"{arrived} notifications, {blinks} blinks")
    expect(blinks <= arrived + 2, f"it blinked {blinks} times for {arrived} notifications")


def property_of(room, id, name):
    return next(p for p in room.device(id)["properties"] if p["name"] == name)


@scenario()
def chart_of_any_value(room):
    page = room.page("#m/window")
    page.until("charts[0]?.svg.clientWidth > 0 && connected", CONNECT)
    for values in (
        [2**53 + 2], [-(2**53) - 2], [2**53, 2**53 + 2], [1e308], [1e308, -1e308], [1e300, 1e-300], [5e-324, 1e-323],
        [0], [0, 5e-324], [1, 1 + 2e-16], [1.7e12, 1.7e12 + 3], [21, 21.0625], [-5, 1e9], ["NaN", 3], ["Infinity", 1],
        ["-Infinity", "Infinity"],
    ):
        for width in (900, 60, 1):
            marks, path = page.run(
                f"""(() => {{
                  const chart = charts[0], end = now();
                  chart.svg.style.width = '{width}px';
                  chart.p.spark = [];
                  chart.lines[0].points = [{", ".join(map(str, values))}].map((v, i) => [end - 60000 * (i + 1), v]).reverse();
                  chart.draw();
                  return [$$('line, text', chart.svg).length, $('path', chart.svg)?.getAttribute('d')];
                }})()"""
            )
            expect(marks < 60, f"{values}: {marks} marks")
            expect("NaN" not in (path or ""), f"{values}: {path}")
    expect(page.run("number(1e308)") == "1.00e+308" and page.run("number(-1e-20)") == "−1.00e−20", "it is too long")
    expect(page.run("number(2 ** 53)") == "9007199254740992" and page.run("number(-4.56789)") == "−4.568", "wrong")


@scenario()
def clock_is_set(room):
    page = room.page()
    online(page)
    before = page.run("round")
    page.run("take.values({ time: new Date(now() - 3600000).toISOString(), values: {} })")
    page.until(f"round > {before} && connected && $('.strip.bad').hidden")
    points = page.run(
        """(() => {
          const p = { d: { value: 1 }, spark: [] };
          for (const time of [1000, 5000, 9000, 4000]) sample(p, time);
          return p.spark.map(([time]) => time);
        })()"""
    )
    expect(points == [1000, 4000], f"the line goes back in time: {points}")


@scenario(http={"password_file": "secret", "read_password_file": "look"})
def password_for_reading(room):
    visible = "$$('button, input, select, summary').filter((el) => el.checkVisibility()).map(nameOf)"
    for password, changes in (("look", False), ("secret", True)):
        page = room.page()
        page.log_in(room.address, password)
        online(page)
        expect(page.run("$('.look').checkVisibility()") != changes, f"{password}: the wrong words")
        for fragment, shown, control in (
            ("", "tile('Window')", "Identify"), ("m/window", "card('Temperature')", "Remove"),
            ("gateway", "card('Broker')", "Let new"),
        ):  # fmt: skip
            page.go(fragment)
            page.until(f"{shown}?.checkVisibility()")
            names = page.run(visible)
            expect(any(name.startswith(control) for name in names) == changes, f"{password}: {fragment}: {names}")
            if not changes:
                names = [name for name in names if not name.startswith(("Show", "Full screen", "Search", "Language", "View", "Area", "Time span", "All micro"))]
                expect(not names, f"it can be changed: {names}")
            if fragment == "m/window":
                expect(page.run("!$('.plot', card('Measuring interval'))"), "the interval has a chart")
        page.close()


@scenario("--services", "temperature,log")
def data_log_is_downloaded(room):
    page = room.page("#m/window")
    page.until("named('Download the data log')?.checkVisibility()", CONNECT)
    page.run("window.saved = null, URL.createObjectURL = (blob) => (blob.text().then((text) => { window.saved = text; }), 'data:,')")
    page.run("named('Download the data log').click()")
    page.until("window.saved?.startsWith('run,Time (seconds),temperature\\r\\n1,0.5,21\\r\\n')")
    expect(not page.run("named('Download the data log').disabled"), "it cannot be read again")
    box = "named('Publish new rows of the data log')"
    for wanted in ("true", "false"):
        page.run(f"{box}.click()")
        page.until(f"!!devices.get('window').d.publishes_log === {wanted} && {box}.checked === {wanted}")


@scenario()
def chart_and_history(room):
    page = room.page("#m/window")
    page.until("$('.plot path', card('Temperature'))?.getAttribute('d').length > 8", CONNECT)
    expect(page.run("named('Download as CSV').getAttribute('href')") == "api/history/window.csv", "no CSV")
    csv = page.run("fetch('api/history/window.csv').then((a) => a.text())")
    expect("temperature (°C)" in csv, "the CSV has no values")
    page.run("$('.plot svg', card('Temperature')).focus()")
    for _ in range(2):
        page.key("ArrowLeft")
    page.until("/^\\d\\d:\\d\\d: -?\\d+ °C/.test($('.plot svg', card('Temperature')).getAttribute('aria-valuetext'))")
    page.until("$$('.plot path', card('Acceleration')).length === 3")
    page.run("document.activeElement.blur()")
    for hours, words in ((1 / 60, "1 min"), (24, "24 hr")):
        choose(page, "Time span", page.run(f"String({hours})"))
        page.until(f"$('.plot figcaption', card('Temperature')).textContent.endsWith('{words}')")
    page.click("named('All micro:bits in one chart', card('Temperature'))")
    page.until("$$('.plot path', card('Temperature')).every((el) => el.getAttribute('d')?.length > 8)")
    shown = "$$('.plot text[class]', card('Temperature')).map((el) => el.textContent).sort().join()"
    page.until(f"$$('.plot path', card('Temperature')).length === 3 && {shown} === 'Door,Garden,Window'")
    page.picture(os.path.join(room.folder, "compared.png"))
    page.run("location.reload()")
    after_reload(page, f"{shown} === 'Door,Garden,Window'")
    page.click("named('All micro:bits in one chart', card('Temperature'))")
    page.until("$$('.plot path', card('Temperature')).length === 1")


@scenario()
def gateway_page(room):
    page = room.page("#gateway")
    page.until("card('Broker').innerText.includes('connected to 127.0.0.1')")
    page.until("card('Bluetooth adapters').innerText.includes('3 of 100 connections in use')", CONNECT)
    page.until("/3 of 3 online/.test(card('Gateway').innerText)", CONNECT)
    page.until("card('Recent events').innerText.includes('Window')")
    page.run("take.gateway({ ...gateway, events: [{ time: new Date(now() - 864e5).toISOString(), text: 'long ago' }] })")
    page.until("card('Recent events').innerText.includes(when(now() - 864e5))")


# What can be done


@scenario("--services", "temperature", "--minimum-period", "800")
def period(room):
    page = room.page()
    online(page)
    page.until("named('every 1 s', tile('Window')).getAttribute('aria-pressed') === 'true'")
    page.click("named('every 3 s', tile('Window'))")
    page.until("named('every 3 s', tile('Window')).getAttribute('aria-pressed') === 'true'")
    expect(room.microbits.period(0) == 3000, "the micro:bit has not got the period")
    expect(page.run("$$('.choice [aria-pressed=true]', tile('Window')).length") == 1, "two are marked")
    page.until("$('[role=status]').textContent === 'Measuring interval: 3 s confirmed'")
    page.type("$('.choice input', tile('Window'))", "2.5")
    page.key("Enter")
    page.until("!$('.choice [aria-pressed=true]', tile('Window'))")
    expect(room.microbits.period(0) == 2500, "the micro:bit has not got the other period")
    page.type("$('.choice input', tile('Window'))", "0.5")
    page.key("Enter")
    page.until("tile('Window').innerText.includes('It keeps 800 ms instead of 500 ms.')")
    page.until("(document.activeElement.blur(), $('.choice input', tile('Window')).value === '0.8')")
    # One that waits, and one that fails.
    room.microbits.ask("vanish", 1)
    page.until("!state('Door').includes('connected')")
    page.click("named('every 4 s', tile('Door'))")
    page.until("tile('Door').innerText.includes('4 s will be set when it is connected.')")
    expect(page.run("named('every 4 s', tile('Door')).getAttribute('aria-busy')") == "true", "it is not marked")
    room.microbits.ask("return", 1)
    page.until("named('every 4 s', tile('Door')).getAttribute('aria-pressed') === 'true'", CONNECT)
    room.microbits.ask("pairing", 2, pairs=False)
    page.click("named('every 5 s', tile('Garden'))")
    page.until("$('.note.fault', tile('Garden')).textContent.startsWith('5 s was not set: ')", CONNECT)
    old = page.run("named('every 1 s', tile('Garden')).getAttribute('aria-pressed')")
    expect(old == "true", "the old one is not marked")
    # Somebody else has set another one at the same time: nothing is read out.
    page.run("void (fetch = async () => new Response('{\"data\":{\"status\":\"superseded\"}}'))")
    page.click("named('every 2 s', tile('Window'))")
    page.until("$('[role=status]').textContent === ''")


@scenario()
def connect_cancel_disconnect(room):
    page = room.page()
    online(page)
    page.click("named('Disconnect', tile('Window'))")
    page.until("state('Window') === 'disconnected'")
    room.microbits.ask("vanish", 0)
    page.click("named('Connect', tile('Window'))")
    page.until("named('Cancel', tile('Window'))")
    page.click("named('Cancel', tile('Window'))")
    page.until("state('Window') === 'disconnected' && named('Connect', tile('Window'))")
    room.microbits.ask("return", 0)
    page.click("named('Connect', tile('Window'))")
    online(page, "Window")
    page.until("$('.bar p').textContent === '3 of 3 online'")


@scenario()
def leds_and_texts(room):
    page = room.page("#m/window")
    page.until("card('LED matrix') && !named('row 3, column 3', card('LED matrix')).disabled", CONNECT)
    page.click("named('All off', card('LED matrix'))")
    page.until("$$('.led .on').length === 0 && !$('.led .draft')")
    page.click("named('row 3, column 3', card('LED matrix'))")
    page.until("named('row 3, column 3').getAttribute('aria-pressed') === 'true' && !$('.led .draft')")
    expect(room.writes(0, LED)[-1] == "0000040000", f"the micro:bit got {room.writes(0, LED)}")
    page.key("ArrowDown")
    page.key("Enter")
    page.until("named('row 4, column 3').getAttribute('aria-pressed') === 'true' && !$('.led .draft')")
    page.type("$('input', card('LED text'))", "Hello")
    page.key("Enter")
    page.until("card('LED text').innerText.includes('Sent at')")
    expect(bytes.fromhex(room.writes(0, LED_TEXT)[-1]) == b"Hello", "the micro:bit has not got the text")


@scenario()
def name_area_and_id(room):
    page = room.page("#m/window")
    page.until("card('Settings')", CONNECT)
    page.type("$('[name=name]')", "<b>Sill</b> & \"x\"")
    page.type("$('[name=area]')", "Hall")
    page.click("named('Save')")
    page.until("$('.head h2').textContent === '<b>Sill</b> & \"x\"' && $('.head .quiet').textContent === 'Hall'")
    expect(not page.run("$('.head b')"), "a name was taken as HTML")
    page.type("$('[name=id]')", "sill")
    page.click("named('Save')")
    page.until("location.hash === '#m/sill' && $('.head h2')?.textContent.includes('Sill')")
    # What cannot be saved does not lose the page of what was renamed before.
    page.type("$('[name=name]')", "Seat")
    page.type("$('[name=area]')", "x" * 200)
    page.click("named('Save')")
    page.until("location.hash === '#m/seat' && $('.head h2')?.textContent === 'Seat' && toast.innerText.includes('area')")
    page.type("$('[name=name]')", "<b>Sill</b> & \"x\"")
    page.click("named('Save')")
    page.until("$('.head h2')?.textContent.includes('Sill')")
    page.go("")
    page.until("$$('.tile h2').map((el) => el.textContent).join() === '<b>Sill</b> & \"x\",Door,Garden'")


@scenario()
def remove_scan_and_add(room):
    page = room.page()
    online(page)
    page.click("$('a', tile('Window'))")
    page.click("named('Remove', card('Settings'))")
    page.click("named('Remove', $('dialog'))")
    page.until("location.hash === '' && $$('.tile').length === 2 && !tile('Window')")
    page.click("named('Add a micro:bit')")
    page.click("named('Add: ', $('dialog'))")
    page.type("named('Name', $('dialog'))", "Attic")
    page.key("Enter")
    page.until("$('dialog').innerText.includes('Attic is added.')")
    page.click("named('Close', $('dialog'))")
    online(page, "Attic")


@scenario()
def identify_and_correct(room):
    page = room.page()
    online(page)
    page.click("named('Identify', tile('Window'))")
    page.until("$('.toast').innerText.includes('Look at the LEDs of Window.')")
    expect(room.writes(0, LED_TEXT), "the micro:bit shows nothing")
    room.microbits.ask("temp", 0, v=25)
    page.until("value('Window') === '25°C'")
    page.go("#m/window")
    page.click("$('summary', card('Temperature'))")
    page.type("$('details input', card('Temperature'))", "-4.5")
    page.key("Enter")
    page.until("$('.value', card('Temperature')).textContent === '20.5°C'")


@scenario(
    "--services", "temperature,uart", "--generate", "values/soil_%=constant:40@200", "--generate", "values/servo=echo",
)
def values_of_a_program(room):
    entries = room.three()
    entries[0]["values"] = {"soil": {"offset": 2}}
    room.configure(entries)
    page = room.page("#m/window")
    page.until("ask('reload').then(({ error }) => !error)")
    page.until("/42\\s*%/.test(card('Soil').innerText)", CONNECT)
    page.click("$('summary', card('Soil'))")
    page.until("card('Soil').innerText.includes('Set by the configuration.')")
    page.type("$('details input', card('Soil'))", "5")
    page.key("Enter")
    page.until("/45\\s*%/.test(card('Soil').innerText) && !card('Soil').innerText.includes('Set by')")
    page.type("$('.set input', card('Soil'))", "50")
    page.key("Enter")
    page.until("card('Soil').innerText.includes('Sent at')")
    # Its program answers with the same line.
    send = "ask('property/set', {{ id: 'window', property: 'values/servo', value: {}, ttl: 30 }})"
    page.until(f"{send.format(5)}.then(({{ data }}) => data.status === 'applied')")
    page.until("$('.detail > .card') === card('Servo') && $('.value', card('Servo')).textContent === '5'")
    page.type("$('.set input', card('Servo'))", "60")
    page.key("Enter")
    page.until("$('[role=status]').textContent === 'Servo: 60 confirmed'")
    # From elsewhere: one that waits, and one that fails.
    room.microbits.ask("vanish", 0)
    page.until("!$('.state').textContent.includes('connected')")
    page.run(f"void {send.format(70)}")
    page.until("$('.note', card('Servo')).textContent === '70 will be set when it is connected.'")
    room.microbits.ask("return", 0)
    page.until("$('.note', card('Servo')).textContent === '' && $('.value', card('Servo')).textContent === '70'", CONNECT)
    room.microbits.ask("pairing", 0, pairs=False)
    page.run(f"void {send.format(80)}")
    page.until("$('.note.fault', card('Servo')).textContent.startsWith('80 was not set: ')", CONNECT)


@scenario("--services", "temperature", configuration=[])
def micro_bits_join(room):
    page = room.page()
    page.until("document.body.innerText.includes('No micro:bit here.')")
    page.click("named('Add a micro:bit')")
    page.click("named('Let new micro:bits join', $('dialog'))")
    page.until("!$('dialog') && /join by themselves: [34]:\\d\\d left/.test(document.body.innerText)")
    page.until("$('.bar p').textContent === '3 of 3 online'", CONNECT)
    page.click("named('Stop')")
    page.until("!document.body.innerText.includes('join by themselves')")


@scenario("--pairing", "passkey", "--services", "temperature")
def pairs_with_passkey(room):
    page = room.page()
    page.until("tile('Window').innerText.includes('It probably has to be paired.')", CONNECT)
    page.click("named('Pair', tile('Window'))")
    page.until("$('dialog input')", CONNECT)
    page.type("$('dialog input')", "100000")
    page.key("Enter")
    page.until("$('.quiet', tile('Window')).textContent.includes('paired')", CONNECT)
    page.go("#m/window")
    page.until("/\\d °C/.test(card('Temperature').innerText)", CONNECT)
    page.until("Number($$('dd', card('Details')).at(-1).textContent) > 2")
    page.click("named('Unpair')")
    page.click("named('Unpair', $('dialog'))")
    page.until("!$('.head .quiet').textContent.includes('paired') && named('Pair')", CONNECT)


@scenario()
def full_screen(room):
    page = room.page(width=1920, height=1080)
    online(page)
    page.click("named('Full screen')")
    page.until("document.fullscreenElement && $('.show')")
    fits = "(el) => el.getBoundingClientRect().bottom <= innerHeight && el.scrollWidth <= el.clientWidth"
    expect(page.run(f"$$('.tile').every({fits})"), "the tiles do not fit")
    page.click("named('Leave full screen')")
    page.until("!document.fullscreenElement && !$('.show')")


# Faults


@scenario()
def gateway_restarts(room):
    page = room.page()
    online(page)
    room.gateway.end(signal.SIGKILL)
    page.until("!$('.strip.bad').hidden && $('.strip.bad').innerText.includes('No connection to the gateway')")
    room.start_gateway()
    page.until("$('.strip.bad').hidden", CONNECT)
    online(page)
    page.until("$('[role=status]').textContent === 'Connected to the gateway.'")


@scenario()
def broker_is_away(room):
    page = room.page("#gateway")
    page.until("card('Broker')?.innerText.includes('connected to')", CONNECT)
    room.broker.end()
    page.until("card('Broker').innerText.includes('no connection to')", CONNECT)
    page.until("$('nav').innerText.includes('problem')", CONNECT)
    page.until("$('.finding').innerText.length > 20")
    page.go("")
    count = property_of(room, "window", "temperature")["count"]
    page.until(f"{PROPERTY.format('window', 'temperature')}.then((p) => p.count > {count})")
    room.start_broker()
    page.until("!$('nav').innerText.includes('problem')", CONNECT)


@scenario()
def two_tabs(room):
    one, other = room.page(), room.page("#m/door")
    online(one)
    other.until("$('.head h2').textContent === 'Door'")
    one.click("named('every 5 s', tile('Door'))")
    other.until("named('every 5 s').getAttribute('aria-pressed') === 'true'")
    other.click("named('every 2 s')")
    one.until("named('every 2 s', tile('Door')).getAttribute('aria-pressed') === 'true'")


@scenario("--services", "temperature,accelerometer", "--generate", "temperature=ramp:0:100:1@100", "--period", "100")
def sleeps_for_an_hour(room):
    page = room.page()
    online(page)
    # The clock goes on by an hour while the tab sleeps.
    page.run("(() => { const now = Date.now; Date.now = () => now() + (window.slept ?? 0); })()")
    watcher = room.page(window=False)
    online(watcher)
    page.until("document.hidden")
    page.ask("Page.setWebLifecycleState", state="frozen")
    shown = page.run("value('Window')")
    count = property_of(room, "window", "temperature")["count"]
    watcher.until(f"{PROPERTY.format('window', 'temperature')}.then((p) => p.count > {count + 100})", CONNECT)
    expect(page.run("value('Window')") == shown, "the tab did not sleep")
    page.run("window.slept = 3600000")
    page.ask("Page.setWebLifecycleState", state="active")
    page.ask("Page.bringToFront")
    page.until("$('[role=status]').textContent === 'Connected to the gateway.' && $('.strip.bad').hidden")
    behind = "(p) => (p.value - parseFloat(value('Window')) + 101) % 101"
    page.until(f"{PROPERTY.format('window', 'temperature')}.then({behind}).then((n) => n <= 3)")


FAST = ("--generate", "temperature=ramp:0:100:1@100", "--period", "100", "--connect-ms", "20", "--scan-ms", "200")
SLOW = ("--connect-ms", "1000", "--disconnect-ms", "2000", "--scan-ms", "200")
CLASS = ("--connect-ms", "20", "--scan-ms", "200")
EVERY = [{"match": {"name_prefix": "BBC micro:bit"}}]


@scenario("--services", "temperature,accelerometer", *FAST, devices=100, configuration=EVERY)
def sleeps_until_it_is_cut_off(room):
    """The server ends a connection from which nothing was read for 60 s."""
    page = room.page()
    page.until("$('.bar p')?.textContent === '100 of 100 online'", 180)
    watcher = room.page("#gateway", window=False)
    page.until("document.hidden")
    # Else the page's alone would be taken for the watcher's, and nothing would be waited for.
    watcher.until(STREAMS.format(2), CONNECT)
    page.ask("Page.setWebLifecycleState", state="frozen")
    watcher.until(STREAMS.format(1), 240)
    first, second, *_ = sorted(device["id"] for device in json.loads(room.get("api/devices")))
    watcher.until(f"act('device/options', {{ id: '{first}', options: {{ name: 'Awake', period: 5000 }} }})")
    watcher.until(f"act('device/remove', {{ id: '{second}' }})")
    watcher.close()
    page.ask("Page.setWebLifecycleState", state="active")
    page.ask("Page.bringToFront")
    page.until("$('[role=status]').textContent === 'Connected to the gateway.' && $('.strip.bad').hidden")
    page.until("$$('.tile').length === 99")
    choose(page, "View", "tiles")
    page.until("named('every 5 s', tile('Awake')).getAttribute('aria-pressed') === 'true'", CONNECT)
    page.until(STREAMS.format(1))


# Many


@scenario("--services", "temperature", *FAST, devices=100, configuration=EVERY)
def hundred_at_ten_hertz(room):
    page = room.page()
    page.until("$('.bar p')?.textContent === '100 of 100 online'", 180)
    page.run("(() => { window.frames = 0; (function f() { window.frames += 1; requestAnimationFrame(f); })(); })()")
    before = metrics(page)
    lags = []
    for _ in range(20):
        # By how many values each tile differs from what the gateway has now.
        lags += page.run(
            """new Promise((done) => setTimeout(done, 500)).then(() => fetch('api/devices')).then((a) => a.json())
              .then((all) => all.map((d) => {
                const shown = parseFloat($('.hero .value', $(`a[href="#m/${d.id}"]`).closest('.tile')).textContent);
                const apart = Math.abs(d.properties.find((p) => p.name === 'temperature').value - shown);
                return Math.min(apart, 101 - apart);
              }))"""
        )
    after = metrics(page)
    took = after["Timestamp"] - before["Timestamp"]
    busy = (after["TaskDuration"] - before["TaskDuration"]) / took
    frames = page.run("window.frames")
    figures.append(
        f"values apart from the gateway's: median {statistics.median(lags):.0f}, most {max(lags)}; "
        f"page busy {busy:.0%}; {frames / took:.0f} frames/s; {after['JSHeapUsedSize'] / 1e6:.1f} MB"
    )
    expect(max(lags) <= 10, f"the page falls behind: {sorted(lags)}")


PICTURES = {
    "window": ".#.#./#####/#####/.###./..#..",
    "door": "...../.#.#./...../#...#/.###.",
    "garden": "..#../.###./#####/..#../..#..",
}


def all_match(pattern, names):
    return not [name for name in names if not re.fullmatch(pattern, name)]


def metrics(page):
    page.ask("Performance.enable")
    return {metric["name"]: metric["value"] for metric in page.ask("Performance.getMetrics")["metrics"]}


# For everybody

PAGES = ("", "#m/window", "#gateway")


def choose(page, label, value):
    """Chooses from a list, as a person does who opens it."""
    page.until(f"""$(`select[aria-label="{label}"]`)""")
    page.run(
        f"""((list) => {{ list.value = '{value}'; list.dispatchEvent(new Event('change')); }})(
          $(`select[aria-label="{label}"]`))"""
    )


def after_reload(page, expression):
    """The answer to a question that the old page was asked is lost with it."""
    for _ in range(3):
        try:
            return page.until(expression, CONNECT)
        except (Failed, KeyError) as lost:
            if "navigated" not in str(lost) and "context" not in str(lost):
                raise
    raise Failed(f"the page is loaded again and again: {expression}")


def texts():
    """The texts of each language, by key."""

    def flat(value, key=""):
        if isinstance(value, dict):
            return {k: text for name, part in value.items() for k, text in flat(part, f"{key}.{name}").items()}
        return {f"{key}[{i}]": text for i, text in enumerate(value)} if isinstance(value, list) else {key: value}

    folder, all = "Sources/Web/Page/texts", {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            all[name.removesuffix(".json")] = flat(json.load(file))
    return all


@scenario()
def files_of_the_page(room):
    """They are small, and a browser that has them gets them no second time."""
    size = 0
    for path in ("", "page.css", "language.js", "page.js", *(f"texts/{name}.json" for name in sorted(texts()))):
        with urllib.request.urlopen(room.address + path, timeout=START) as answer:
            body, tag = answer.read(), answer.headers["ETag"]
        try:
            urllib.request.urlopen(
                urllib.request.Request(room.address + path, headers={"If-None-Match": tag}), timeout=START
            )
            raise Failed(f"/{path} is sent again")
        except urllib.error.HTTPError as answer:
            expect(answer.code == 304 and not answer.read(), f"/{path} is sent again")
        if not path.startswith("texts/") or path == "texts/ja.json":
            size += len(body)
    figures.append(f"the page has {size / 1000:.0f} kB")
    expect(size <= 120_000, "the page is too large")


@scenario(http={"language": "fr"})
def language_of_the_configuration(room):
    page = room.page()
    page.until("state('Window') === 'connecté'", CONNECT)
    expect(page.run("document.documentElement.lang") == "fr", "it is not the configured language")
    page.go("#gateway")
    page.until(f"card('{texts()['fr']['.events']}').innerText.includes('Window connecté')")
    choose(page, texts()["fr"][".language"], "en")
    after_reload(page, "document.documentElement.lang === 'en'")


@scenario()
def languages(room):
    """No text is missing, and none is cut on a phone."""
    all = texts()
    for name, its in all.items():
        wrong = [key for key in all["en"] if not its.get(key) and not key.endswith(".one")]
        wrong += [key for key in its if key not in all["en"]]
        wrong += [
            key for key, text in its.items()
            if not key.endswith(".one") and sorted(re.findall(r"{\w+}", text)) != sorted(re.findall(r"{\w+}", all["en"].get(key, "")))
        ]  # fmt: skip
        expect(not wrong, f"{name}: {wrong}")
    page = room.page(width=360, height=780)
    online(page)
    script = room.get("page.js")
    used = json.dumps(sorted(set(re.findall(r"\bT[.](\w+)", script))))
    unknown = page.run(f"{used}.filter((key) => !(key in T))")
    expect(not unknown, f"there is no text for {unknown}")
    expect(page.run("Object.keys(LANGUAGES).sort().join()") == ",".join(sorted(all)), "a language cannot be chosen")
    # A text is cut if it is wider than its element, or its element than the screen.
    cut = """$$('body *').filter((el) => el.checkVisibility() && el.textContent.trim() && !el.closest('.unseen, svg, .wide, select'))
      .filter((el) => el.getBoundingClientRect().right > innerWidth + 1
        || getComputedStyle(el).overflowX === 'hidden' && el.scrollWidth > el.clientWidth + 1).map((el) => el.outerHTML.slice(0, 160))"""
    told = "Language"
    for name in all:
        choose(page, told, name)
        after_reload(page, f"document.documentElement.lang === '{name}' && connected && tiles.size === 3")
        told = all[name][".language"]
        for view in ("tiles", "compact", "table"):
            choose(page, all[name][".view"], view)
            page.until("Boolean($('.wide')) === " + ("true" if view == "table" else "false"))
            found = page.run(cut)
            expect(not found, f"{name}, {view}: {found}")
            if view == "compact":
                page.picture(os.path.join(room.folder, f"{name}-360.png"))
        for fragment in PAGES[1:]:
            page.go(fragment)
            page.until("$('.cards .card')")
            found = page.run(cut)
            expect(not found, f"{name}, {fragment}: {found}")
            for width, height in ((390, 844), (1280, 800), (1920, 1080)):
                page.resize(width, height)
                page.picture(os.path.join(room.folder, f"{name}-{fragment[1:2]}-{width}.png"))
            page.resize(360, 780)
        page.go("")
        page.until("page.kind === 'all'")
    page.run("document.documentElement.dir = 'rtl'")
    expect(page.run("document.documentElement.scrollWidth") <= 360, "it is too wide from right to left")


@scenario("--services", "temperature,buttons,accelerometer,led,uart", *CLASS, devices=30, configuration=EVERY)
def a_class(room):
    """Thirty on a screen, each with its five letters; a table."""
    page = room.page(height=800)
    page.until("$('.bar p')?.textContent === '30 of 30 online'", 120)
    page.until("$$('.mini').length === 30")
    low = page.run("Math.max(...$$('.mini').map((el) => el.getBoundingClientRect().bottom))")
    expect(low <= 800 and page.run("document.documentElement.scrollHeight") <= 800, f"the last one ends at {low}")
    names = page.run("$$('.mini h2').map((el) => el.textContent)")
    expect(all_match(r"[a-z]{5}", names), f"{names} are not five letters each")
    page.until("$$('.mini .hero .value').every((el) => /\\d/.test(el.textContent))", CONNECT)
    heights = "$$('.mini').map((el) => el.offsetHeight).join()"
    before = page.run(heights)
    room.microbits.ask("temp", 0, v=-10)
    page.until("$$('.mini .value').some((el) => el.textContent === '−10°C')")
    expect(page.run(heights) == before, "a value moves what is below it")
    for width, height in ((1280, 800), (390, 844), (1920, 1080)):
        page.resize(width, height)
        page.picture(os.path.join(room.folder, f"class-{width}.png"))
    page.resize(1280, 800)
    choose(page, "View", "table")
    page.until("$$('tbody tr').length === 30")
    page.click("named('Value', $('thead'))")
    page.until("$('[aria-sort=ascending]').textContent === 'Value'")
    rows = "$$('tbody .value').map((el) => parseFloat(el.textContent.replace('−', '-')))"
    page.until(f"{rows}[0] === -10")
    page.click("named('Value', $('thead'))")
    page.until(f"{rows}.at(-1) === -10 && $('[aria-sort=descending]')")
    page.click("$('tbody a')")
    page.until("named('Disconnect') && $('.head h2')")
    page.run("history.back()")
    page.until("$('table')")
    page.run("location.reload()")
    after_reload(page, "$$('tbody tr').length === 30")


def fits(room, count):
    """On a phone, a notebook and large screens; as tiles up to eight."""
    page = room.page()
    page.until(f"$('.bar p')?.textContent.startsWith('{count} of {count} ')", 120)
    shape = ".tile" if count <= 8 else ".mini"
    shown = f"$$('{shape}').filter((el) => /\\d/.test($('.value', el)?.textContent))"
    page.until(f"{shown}.length === {count}", CONNECT)
    for width, height in ((390, 844), (1280, 800), (1920, 1080), (3840, 2160)):
        page.resize(width, height)
        outside = page.run(f"{shown}.filter((el) => el.getBoundingClientRect().right > innerWidth).length")
        expect(outside == 0 and page.run("document.documentElement.scrollWidth <= innerWidth"), f"{width}: too wide")
        page.picture(os.path.join(room.folder, f"{count}-{width}.png"))


for count in (1, 8, 60):
    scenario(
        "--services", "temperature,buttons,accelerometer,led", *CLASS,
        name=f"class_of_{count}", devices=count, configuration=EVERY,
    )(functools.partial(fits, count=count))  # fmt: skip


@scenario()
def areas(room):
    page = room.page()
    online(page)
    choose(page, "Area", "=Outside")
    page.until("!tile('Window').checkVisibility() && tile('Garden').checkVisibility()")
    choose(page, "Area", "*")
    page.until("tile('Window').checkVisibility()")
    # An area may have any name, also that of an entry of the list.
    page.run("ask('device/options', { id: 'garden', options: { area: '*' } })")
    page.until("[...areas.options].map((o) => o.textContent).join() === 'All areas,*,Kitchen'")
    choose(page, "Area", "=*")
    page.until("!tile('Window').checkVisibility() && tile('Garden').checkVisibility()")


@scenario("--services", "temperature", "--period", "500")
def values_grow_old(room):
    page = room.page()
    online(page)
    expect(page.run("!$('.age', tile('Door')).textContent"), "a live value has an age")
    room.microbits.ask("vanish", 1)
    page.until("tile('Door').classList.contains('off') && $('.age', tile('Door')).textContent.endsWith('ago')", CONNECT)
    expect(not page.run("$('.age', tile('Window')).textContent"), "a live value has an age")
    room.microbits.ask("return", 1)
    online(page, "Door")
    page.until("!$('.age', tile('Door')).textContent")
    page.until("$('.spark path', tile('Door')).getAttribute('d').split('M').length === 3")


@scenario()
def bluetooth_is_off(room):
    """It is said as that, with a command to copy."""
    page = room.page()
    online(page)
    room.microbits.ask("power", on=False)
    page.until("state('Window') === 'Bluetooth is off' && !$('.signal', tile('Window')).checkVisibility()", CONNECT)
    page.until("$('.badge')?.textContent === '1' && $('nav').textContent.includes('1 problem')", CONNECT)
    page.picture(os.path.join(room.folder, "off.png"))
    page.go("#gateway")
    page.until("$('.finding').innerText.includes('Bluetooth is off (adapter hci0).')")
    page.until("$('.finding code').textContent === 'bluetoothctl power on'")
    page.click("named('Copy: bluetoothctl')")
    page.until("$('.toast').innerText.includes('Copied.')")
    page.picture(os.path.join(room.folder, "remedy.png"))


@scenario()
def accessible(room):
    with open(os.path.join(os.environ["AXE"], "axe.min.js")) as file:
        axe = file.read()
    page = room.page()
    online(page)
    for dark in (False, True):
        page.prefer(dark)
        for fragment in (*PAGES, "compact", "table", "dialog", "period"):
            if fragment == "dialog":
                choose(page, "View", "tiles")
                page.click("named('Add a micro:bit')")
                page.until("$('dialog').innerText.includes('3 micro:bits found')")
            elif fragment in ("compact", "table"):
                page.go("")
                choose(page, "View", fragment)
                page.until("$('.mini, .wide')")
            elif fragment == "period":
                page.key("Escape")
                page.until("!$('dialog')")
                room.microbits.ask("vanish", 1)
                page.until("!state('Door').includes('connected')")
                page.click("named('every 4 s', tile('Door'))")
                page.until("$('.choice [aria-busy]')")
            else:
                page.go(fragment)
                page.until({"": "tile('Door')", "#gateway": "card('Broker')"}.get(fragment, "card('Temperature')"))
            page.ask("Runtime.evaluate", expression=axe)
            found = page.run(
                "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map((v) => "
                "`${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`))"
            )
            expect(not found, f"{fragment or 'tiles'}, {'dark' if dark else 'light'}: {found}")
        room.microbits.ask("return", 1)
        page.until("state('Door').includes('connected')", CONNECT)


@scenario()
def narrow_and_wide(room):
    page = room.page(width=360, height=780)
    online(page)
    for width, height in ((360, 780), (768, 1024), (3840, 2160)):
        page.resize(width, height)
        for fragment in PAGES:
            page.go(fragment)
            page.until({"": "tile('Door')", "#gateway": "card('Broker')"}.get(fragment, "card('Temperature')"))
            wide = page.run("document.documentElement.scrollWidth")
            expect(wide <= width, f"{fragment or 'tiles'} is {wide} wide at {width}")


@scenario()
def keyboard_alone(room):
    page = room.page()
    online(page)
    for _ in range(60):
        page.key("Tab")
        if page.run("document.activeElement.closest('.choice') && tile('Garden').contains(document.activeElement)"):
            break
    for _ in range(3):
        page.key("ArrowRight")
    page.key("Enter")
    page.until("named('every 4 s', tile('Garden')).getAttribute('aria-pressed') === 'true'")
    expect(page.run("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus is not seen")


@scenario()
def focus_is_kept(room):
    """When a tile gets another shape, or the overview another one, and what is typed too."""
    page = room.page()
    online(page)
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    page.run("named('Identify: Window').focus()")
    before = page.run("window.before = document.activeElement")
    room.microbits.ask("value", 0, characteristic=UART, hex=b"moisture:7\n".hex())
    page.until("tile('Window').innerText.includes('Moisture')", CONNECT)
    expect(page.run("document.activeElement !== window.before"), f"the tile was not made anew: {before}")
    expect(page.run(focused) == "Identify: Window", f"the focus is at {page.run(focused)}")
    page.run("viewSelect.value = 'compact', listChanged = true, draw()")
    page.until("$$('.mini').length === 3")
    # It has no such button: its link.
    expect(page.run(focused) == "Window", f"the focus is at {page.run(focused)}")
    page.run("viewSelect.value = 'table', listChanged = true, draw()")
    page.until("$$('tbody tr').length === 3")
    expect(page.run(focused) == "Window", f"the focus is at {page.run(focused)}")
    page.go("#m/door")
    page.type("$('[name=area]')", "Cella")
    room.microbits.ask("value", 1, characteristic=UART, hex=b"moisture:7\n".hex())
    page.until("card('Moisture')", CONNECT)
    typed = page.run("`${document.activeElement.name} ${document.activeElement.value}`")
    expect(typed == "area Cella", f"what was typed is lost: {typed}")
    # In each field, in the card where it was typed, and where it had to be unfolded.
    page.click("$('summary', card('Moisture'))")
    page.type("$('details input', card('Moisture'))", "7.5")
    page.type("$('input', card('Send a text'))", "start motor")
    room.microbits.ask("value", 1, characteristic=UART, hex=b"light:1\n".hex())
    page.until("card('Light')", CONNECT)
    typed = page.run("[$('details[open] input', card('Moisture'))?.value, $('[name=area]').value, $('input', card('Send a text')).value].join()")
    expect(typed == "7.5,Cella,start motor", f"what was typed is lost: {typed}")
    expect(page.run("card('Send a text').contains(document.activeElement)"), "the focus is in another card")


@scenario()
def reduced_motion(room):
    page = room.page()
    online(page)
    moving = "(tile('Window').classList.add('busy'), document.getAnimations().length)"
    expect(page.run(moving) == 1, "what is being connected does not move")
    page.prefer(False, still=True)
    expect(page.run(moving) == 0, "something moves")
    page.until("(tile('Window').classList.remove('busy'), $('.mark.lit'))")
    page.until("!$('.mark', tile('Window')).classList.contains('lit')")


# A class


def until_shown(room, index, *shown):
    """Until the LEDs have shown these texts, one after the other."""
    end = time.monotonic() + CONNECT
    while (texts := tuple(bytes.fromhex(text) for text in room.writes(index, LED_TEXT))) != shown:
        expect(time.monotonic() < end, f"{index} shows {texts}, not {shown}")
        time.sleep(0.1)


@scenario("--services", "temperature,buttons,led")
def number_them(room):
    """Each press of button A gives the next number; name and id are alike, and the old topics are gone."""
    page = room.page()
    online(page)
    page.click("named('Add a micro:bit')")
    page.click("named('Number them')")
    page.until("$('dialog h2').textContent === 'Number them'")
    for number, index in ((1, 2), (2, 0)):
        room.microbits.ask("value", index, characteristic=BUTTON_A, hex="01")
        room.microbits.ask("value", index, characteristic=BUTTON_A, hex="00")
        page.until(f"$('dialog [role=status]').textContent === 'This is Table {number}.'", CONNECT)
        page.until(f"devices.get('table-{number}')?.d.name === 'Table {number}'")
    page.until("gateway.numbering.given.length === 2 && numbering.next.value === '3'")
    # Another press shows the number again, and gives no other one, whichever page shows it.
    other = room.page()
    other.until("gateway.numbering?.given.length === 2")
    other.until("$$('.strip').some((el) => !el.hidden && el.textContent.startsWith('2 of 3 numbered.'))")
    other.run("(numbering = new Numbering())")
    other.until("$('dialog [role=status]').textContent === 'This is Table 2.' && numbering.next.value === '3'")
    # It goes on while a page is loaded again.
    other.run("(window.isOld = true, location.reload())")
    after_reload(other, "!window.isOld && $$('.strip').some((el) => !el.hidden && el.textContent.startsWith('2 of 3 numbered.'))")
    other.run("(numbering = new Numbering())")
    room.microbits.ask("value", 2, characteristic=BUTTON_A, hex="00")
    room.microbits.ask("value", 2, characteristic=BUTTON_A, hex="01")
    until_shown(room, 2, b"1", b"1")
    expect(page.run("gateway.numbering.next") == 3, "a number was given twice")
    page.run("$('dialog details').open = true")
    page.click("named('Door: Identify → Table 3', $('dialog'))")
    page.until("devices.get('table-3')?.d.name === 'Table 3'")
    page.type("$('.found input[type=text]', $('dialog'))", "Teacher")
    page.click("named('Save', $('dialog'))")
    page.until("devices.get('teacher')?.d.name === 'Teacher' && !devices.has('table-3')")
    page.picture(os.path.join(room.folder, "numbers.png"))
    page.click("named('Close', $('dialog'))")
    other.until("$('dialog [role=status]').textContent.startsWith('Numbering has ended')")
    page.until("$$('.tile h2').map((el) => el.textContent).sort().join() === 'Table 1,Table 2,Teacher'")
    for index, text in ((2, b"1"), (0, b"2"), (1, b"3")):
        shown = [bytes.fromhex(text) for text in room.writes(index, LED_TEXT)]
        expect(shown[-1:] == [text], f"{index} shows {shown}, not {text}")


@scenario("--services", "temperature,buttons,led", *SLOW, devices=25, configuration=EVERY, links=7)
def number_a_class(room):
    """Seven links, and who shows an A is pressed: all have a number in time."""
    page = room.page()
    page.until("$('.bar p')?.textContent === '25 of 25 online'", 180)
    page.click("named('Add a micro:bit')")
    page.click("named('Number them')")
    begin, rest, most, first = time.monotonic(), set(range(25)), 0, None
    while rest and time.monotonic() < begin + 180:
        shows = {i for i in rest if room.writes(i, LED)[-1:] == [PRESS]}
        most = max(most, len(shows))
        for index in shows:
            room.microbits.ask("value", index, characteristic=BUTTON_A, hex="01")
            room.microbits.ask("value", index, characteristic=BUTTON_A, hex="00")
            page.until(f"gateway.numbering.given.length === {26 - len(rest)}")
            rest.remove(index)
            first = index if first is None else first
            if len(rest) == 12:
                page.until("$('dialog .quiet').textContent.startsWith('13 of 25 numbered. Waiting for a press: ')")
                for width, height in ((390, 844), (1280, 800)):
                    page.resize(width, height)
                    page.picture(os.path.join(room.folder, f"numbering-{width}.png"))
        time.sleep(0.1)
    took = time.monotonic() - begin
    figures.append(f"25 micro:bits with 7 links: numbered in {took:.0f} s, at most {most} waited for a press")
    expect(not rest and took < 90, f"{len(rest)} have no number after {took:.0f} s")
    page.until("$('dialog .quiet').textContent === '25 of 25 numbered. Waiting for a press: 0.'")
    page.click("named('Close', $('dialog'))")
    page.until("$$('.mini h2').map((el) => el.textContent).join() === Array.from({ length: 25 }, (_, i) => `Table ${i + 1}`).join()")
    left = [i for i in range(25) if room.writes(i, LED)[-1:] == [PRESS]]
    expect(not left, f"{left} still show the sign")

    # In the next lesson another one is the first.
    page.click("named('Add a micro:bit')")
    page.click("named('Number them')")
    end = time.monotonic() + 60
    while not (shows := [i for i in range(25) if i != first and room.writes(i, LED)[-1:] == [PRESS]]):
        expect(time.monotonic() < end, "none shows the sign")
        time.sleep(0.1)
    room.microbits.ask("value", shows[0], characteristic=BUTTON_A, hex="01")
    page.until("$('dialog [role=status]').textContent === 'This is Table 1.'")
    page.until("[...devices.values()].filter(({ d }) => d.name === 'Table 1').length === 1")


# A lesson


@scenario("--services", "temperature", *SLOW, devices=25, configuration=EVERY, links=7)
def record_a_class(room):
    """With seven connections, all are in it soon."""
    page = room.page()
    page.until("$('.bar p')?.textContent === '25 of 25 online'", 180)
    page.until("$$('.mini .value').filter((el) => /\\d/.test(el.textContent)).length === 25", CONNECT)
    page.click("named('Record')")
    page.click("named('Record', $('dialog'))")
    page.until("!recordStrip.hidden")
    begin = page.run("Date.parse(gateway.recording.started)")
    page.until(f"[...devices.values()].every((bit) => Date.parse(bit.props.get('temperature').d.time) > {begin})", 120)
    took = page.run("Date.now()") / 1000 - begin / 1000
    figures.append(f"25 micro:bits with 7 links: each has a value in the recording after {took:.0f} s")
    expect(took < 60, f"the last one came after {took:.0f} s")


# Each value is another one than the last: rows that are equal are written twice.
@scenario("--services", "temperature,buttons", "--generate", "temperature=ramp:0:100:1@200", "--period", "200")
def record_a_lesson(room):
    """It goes on when the browser is closed and the gateway killed."""
    page = room.page()
    online(page)
    page.run("named('Record').click(), named('Record').click()")
    page.until("$('dialog')")
    page.type("$('dialog input')", "Lesson 1")
    page.key("Enter")
    page.until("!$('dialog') && !recordStrip.hidden && /^Recording lesson-1: 0:00:0\\d$/.test(recordText.textContent)")
    page.until("/0:00:0[3-9]/.test(recordText.textContent)")
    page.close()
    room.gateway.end(signal.SIGKILL)
    room.start_gateway()
    page = room.page()
    online(page)
    page.until("!recordStrip.hidden && /^Recording lesson-1: /.test(recordText.textContent)")
    page.until("/^Recording lesson-1: 0:00:(0[7-9]|1)/.test(recordText.textContent)", CONNECT)
    page.click("named('Stop: Record')")
    page.until("$('dialog strong').textContent === 'lesson-1' && recordStrip.hidden")
    page.run("say('a fault', true)")
    expect(page.run("$('dialog').contains(toast)"), "the dialog covers what is said")
    page.picture(os.path.join(room.folder, "recordings.png"))
    count = int(page.run("/(\\d+) values/.exec($('dialog li').innerText)[1]"))
    rows = page.run("fetch(named('CSV, a row', $('dialog')).href).then((a) => a.text())").split("\r\n")
    expect(rows[0] == "time,device,property,value,unit" and rows[-1] == "", f"the table begins with {rows[0]}")
    expect(len(rows) == count + 2 and len(set(rows)) == len(rows), f"{len(rows)} rows for {count} values")
    expect({row.split(",")[1] for row in rows[1:-1]} == {"window", "door", "garden"}, "one is missing")
    table = page.run("fetch(named('CSV, a column', $('dialog')).href).then((a) => a.text())").split("\r\n")
    titles = table[0].split(",")
    expect("window temperature (°C)" in titles and "garden temperature (°C)" in titles, f"the columns are {titles}")
    cells = sum(bool(cell) for row in table[1:] for cell in row.split(",")[1:])
    expect(cells == count, f"{cells} cells for {count} values")
    page.click("named('Remove: lesson-1', $('dialog'))")
    page.until("$('dialog:last-of-type h2').textContent === 'Remove lesson-1?'")
    page.picture(os.path.join(room.folder, "remove.png"))
    page.click("named('Remove', $('dialog:last-of-type'))")
    page.until("$('dialog h2').textContent === 'Recordings' && !$('dialog strong')")
    page.key("Escape")
    page.until("!$('dialog') && document.activeElement === main && document.body.contains(toast)")
    page.until("ask('record/list').then(({ data }) => data.length === 0)")


# Pictures for the docs


@scenario("--services", "temperature,buttons,accelerometer,led")
def pictures(room):
    """Into the folder IMAGES, if it is set."""
    page = room.page(width=1200, height=820)
    online(page)
    for id, picture in PICTURES.items():
        page.run(f"ask('property/set', {{ id: '{id}', property: 'led', value: '{picture}' }})")
    for index, hex in enumerate(("ffff0a0016fc", "1e00b4ff30fc", "b603dcff38ff")):
        room.microbits.ask("value", index, characteristic=ACCELEROMETER, hex=hex)
    for temperature in (21, 21, 22, 22, 23, 24, 24, 23, 22, 23):
        for index in range(3):
            room.microbits.ask("temp", index, v=temperature + index * 2)
        page.until(f"value('Window') === '{temperature}°C' && value('Garden') === '{temperature + 4}°C'")
    room.microbits.ask("value", 0, characteristic=BUTTON_A, hex="01")
    page.until("$('.press.down')")
    page.until("$('.spark path', tile('Garden')).getAttribute('d')?.split('L').length > 5", CONNECT)
    taken = []

    def take(name, width, height, dark=False, still=False, fragment="", ready="tile('Door')"):
        page.resize(width, height)
        page.prefer(dark, still)
        page.go(fragment)
        page.run("scrollTo(0, 0)")
        page.until(ready)
        taken.append(os.path.join(room.folder, f"page-{name}.png"))
        page.picture(taken[-1])

    take("light", 1200, 820)
    take("dark", 1200, 820, dark=True)
    take("phone", 360, 720)
    room.microbits.ask("vanish", 1)
    page.click("named('Disconnect', tile('Garden'))")
    page.until("state('Garden') === 'disconnected' && !state('Door').includes('connected')")
    page.until("!$('.mark.lit', tile('Garden'))")
    page.click("named('every 4 s', tile('Door'))")
    # Without motion the mark is lit until the next notification.
    take("states", 1200, 760, still=True, ready="$('.mark.lit', tile('Window')) && $('.choice [aria-busy]')")
    take("device", 1200, 900, fragment="#m/window", ready="$('.plot path')")
    room.microbits.ask("return", 1)
    page.go("")
    page.click("named('Connect', tile('Garden'))")
    online(page)
    page.resize(1280, 720)
    page.click("named('Full screen')")
    page.until("document.fullscreenElement")
    take("projector", 1280, 720, dark=True)
    if images := os.environ.get("IMAGES"):
        for path in taken:
            subprocess.run(["pngquant", "--force", "--output", path, "256", path], check=True)
            shutil.copy(path, images)
    figures.append(" ".join(f"{os.path.basename(path)} {os.path.getsize(path) // 1024} KiB" for path in taken))


