"""Set-up in the browser, of a gateway that nobody has configured."""

import json
import os
import re
import urllib.error
import urllib.request

from journal import Failed, expect
from processes import START
from scenarios import CONNECT, after_reload, choose, scenario, texts

CUT = """$$('body *').filter((el) => el.checkVisibility() && el.textContent.trim() && !el.closest('.unseen, select'))
  .filter((el) => el.getBoundingClientRect().right > innerWidth + 1).map((el) => el.outerHTML.slice(0, 160))"""
VIOLATIONS = (
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map((v) => "
    "`${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`))"
)


def code(room):
    """The one that the log has told last."""
    with open(room.gateway.path) as log:
        return re.findall(r"code=(\w{4}-\w{4})", log.read())[-1]


def enter(page, code):
    page.type("$('.code')", code)
    page.click("named('Continue')")


def accessible(page):
    with open(os.path.join(os.environ["AXE"], "axe.min.js")) as file:
        page.ask("Runtime.evaluate", expression=file.read())
    found = page.run(VIOLATIONS)
    expect(not found, f"axe: {found}")


def option(name, value):
    return f"$('input[name={name}][value={value}]')"


@scenario("--services", "temperature,buttons", new=True)
def sets_up(room):
    """From the address and the code to the page with its micro:bits."""
    page = room.page()
    page.until("document.title === 'Set up the gateway' && $('.code') === document.activeElement")
    accessible(page)
    enter(page, "ABCD-EFGH")
    page.until("$('[role=alert]').innerText.includes('This is not the code.')")
    enter(page, code(room).lower())
    page.until("card('Micro:bits in range').querySelectorAll('strong').length === 3", CONNECT)
    names = page.run("$$('strong', card('Micro:bits in range')).map((el) => el.textContent)")
    expect(all(re.fullmatch("[a-z]{5}", name) for name in names), f"{names} are not five letters each")
    # Trouble is said where it is.
    room.microbits.ask("power", on=False)
    page.until("card('Micro:bits in range').innerText.includes('Bluetooth is off')")
    expect(page.run("named('Copy: bluetoothctl power on') !== undefined"), "the remedy is not there to copy")
    for dark in (False, True):
        page.prefer(dark)
        accessible(page)
    page.prefer(False)
    room.microbits.ask("power", on=True)
    page.until("card('Micro:bits in range').querySelectorAll('strong').length === 3", CONNECT)
    # The broker of this computer does not answer; another one is tried before anything is saved.
    expect(page.run("card('Which MQTT broker?').innerText.includes('sudo apt install mosquitto')"), "no way to a broker")
    page.click(option("broker", "other"))
    page.type("named('Name or address')", "127.0.0.1")
    page.type("named('Port')", "1")
    page.click("named('Save and start')")
    page.until("$('[role=alert]').innerText.includes('At least 4 characters')")
    page.type("named('Password', card('Who may open the page afterwards?'))", "page word")
    page.type("named('For example Room 12')", "Room 12")
    page.click("named('Save and start')")
    page.until("$('[role=alert]').innerText.includes('cannot be used') && named('Save all the same')", CONNECT)
    expect(page.run("$('[role=alert]').innerText.includes('nothing answers there')"), "the reason is not shown")
    for width, height in ((390, 844), (1280, 800)):
        page.resize(width, height)
        page.run("$('[role=alert]').scrollIntoView(false)")
        page.picture(os.path.join(room.folder, f"trouble-{width}.png"))
    before = room.configuration()
    # Two browsers: the first one wins.
    other = room.page()
    enter(other, code(room))
    other.until("named('Save and start')")
    page.type("named('Port')", str(room.port))
    page.click("named('Save and start')")
    page.until("document.body.innerText.includes('The gateway starts again with it.')", CONNECT)
    expect(room.configuration() == before, "it is written before the gateway starts again")
    other.until("document.body.innerText.includes('The gateway was set up in another browser')")
    room.gateway.wait_line("the page is served")
    written = json.loads(room.configuration())
    expect(written["gateway"]["area"] == "Room 12" and written["http"]["address"] == "::", f"written: {written}")
    try:
        room.get("health")
        raise Failed("the page asks for no password")
    except urllib.error.HTTPError as answer:
        expect(answer.code == 401, f"the page answers {answer.code}")
    # The browser has come to the page, and is asked for the password.
    after_reload(page, "!document.title.includes('Set up')")
    page.log_in(room.address, "page word")
    after_reload(page, "$$('.tile').length === 3 && $('h1').textContent === 'Room 12'")
    page.until("$$('.tile').every((el) => /\\d/.test($('.hero .value', el).textContent))", CONNECT)


@scenario("--services", "temperature", new=True)
def setup_in_languages(room):
    """Nothing is cut on a phone, in any language; the page is small."""
    page = room.page(width=360, height=780)
    page.until("$('.code')")
    told = "Language"
    for name, its in texts().items():
        choose(page, told, name)
        after_reload(page, f"document.documentElement.lang === '{name}' && $('.code')")
        told = its[".language"]
        expect(not page.run(CUT), f"{name}: {page.run(CUT)}")
        page.type("$('.code')", code(room))
        page.click("$('button.main')")
        page.until("$$('.card').length === 5 && $$('li strong').length === 3", CONNECT)
        page.click(option("broker", "other"))
        for width, height in ((360, 780), (1280, 800)):
            page.resize(width, height)
            expect(not page.run(CUT), f"{name}: {page.run(CUT)}")
            page.picture(os.path.join(room.folder, f"{name}-{width}.png"))
        page.resize(360, 780)
    files = ("", "page.css", "language.js", "page.js", "texts/ja.json")
    size = sum(len(room.get(path).encode()) for path in files)
    expect(size <= 60_000, f"the page has {size} bytes")
