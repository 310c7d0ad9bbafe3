"""What the page shows of each fault and of a class, in all languages, on a phone, a notebook and a large screen: pictures to
look at."""

import functools
import os
import re
import signal
import threading

from journal import expect
from scenarios import CONNECT, EVERY, SLOW, after_reload, online, scenario, texts

LANGUAGES = tuple(texts())
SIZES = ((390, 844), (1280, 800), (1920, 1080))
CUT = """$$('body *').filter((el) => el.checkVisibility() && el.textContent.trim() && !el.closest('.unseen, svg, .wide, select'))
  .filter((el) => el.getBoundingClientRect().right > innerWidth + 1).map((el) => el.outerHTML.slice(0, 160))"""


def found(code):
    return f"gateway.findings?.some((f) => f.code === '{code}')"


def load(page, language, ready):
    page.run(f"(kept('language', '{language}'), window.isOld = true, location.reload())")
    after_reload(page, f"!window.isOld && connected && document.documentElement.lang === '{language}' && {ready}")


def take(page, room, name):
    for width, height in SIZES:
        page.resize(width, height)
        expect(not page.run(CUT), f"{name}, {width}: {page.run(CUT)}")
        page.picture(os.path.join(room.folder, f"{name}-{width}.png"))


def look(page, room, name, condition):
    """Pictures of the overview and of what is wrong, as soon as the condition is met."""
    for language in LANGUAGES:
        for fragment, ready in (("", "$('.grid, .empty')"), ("#gateway", "$('.finding, dl')")):
            page.go(fragment)
            load(page, language, ready)
            page.until(condition, CONNECT)
            take(page, room, f"{name}-{'gateway' if fragment else 'overview'}-{language}")
            if fragment and page.run("gateway.findings?.length"):
                told = page.run("$('.finding').innerText")
                expect(re.search(r"\S", told) and "undefined" not in told, f"{name}, {language}: {told}")
    page.go("")
    load(page, "en", "$('.grid, .empty')")


BLOCKED = """take.gateway({ ...gateway, adapters: gateway.adapters.map((a) => ({ ...a, state: 'blocked' })), findings: [{
  level: 'fault', check: 'adapter', code: 'adapter_blocked', adapter: 'hci0', text: 'hci0 is blocked', remedy: 'sudo rfkill unblock bluetooth' }] })"""
"""The kernel of the virtual micro:bits has no rfkill: what the gateway would say."""


@scenario("--services", "temperature,buttons,led")
def faults(room):
    """Each as it is shown, with its remedy."""
    page = room.page()
    online(page)
    adapter = ("off", "adapter_off", {"op": "power"}), ("absent", "adapter_absent", {"op": "plug"})
    for name, code, command in adapter:
        room.microbits.ask(**command, on=False)
        look(page, room, name, found(code))
        room.microbits.ask(**command, on=True)
        online(page)
    look(page, room, "blocked", f"({BLOCKED}, draw(), {found('adapter_blocked')})")
    # It is answered when bluetoothd runs again.
    restart = threading.Thread(target=room.microbits.ask, args=("restart",), kwargs={"how": "kill", "ms": 30_000})
    restart.start()
    look(page, room, "bluetoothd", found("no_bluetoothd"))
    restart.join()
    online(page)
    room.broker.end()
    look(page, room, "broker", found("no_broker"))
    room.start_broker()
    room.microbits.ask("vanish", 1)
    look(page, room, "lost", found("not_in_range"))
    room.microbits.ask("return", 1)
    online(page)
    room.microbits.ask("pairing", 2)
    room.microbits.ask("disconnect", 2)
    look(page, room, "pairing", "gateway.findings?.some((f) => /pair/.test(f.code))")
    room.gateway.end(signal.SIGKILL)
    page.until("!$('.strip.bad').hidden", CONNECT)
    for width, height in ((390, 844), (1280, 800)):
        page.resize(width, height)
        page.picture(os.path.join(room.folder, f"gateway-away-{width}.png"))
    room.start_gateway()
    page.until("$('.strip.bad').hidden", CONNECT)


@scenario("--services", "temperature", configuration=[])
def nothing_in_range(room):
    for index in range(3):
        room.microbits.ask("vanish", index)
    page = room.page()
    page.until("document.body.innerText.includes('No micro:bit here.')")
    page.click("named('Add a micro:bit')")
    page.until("$('dialog').innerText.includes('No micro:bit was found.')", CONNECT)
    for width, height in ((390, 844), (1280, 800)):
        page.resize(width, height)
        page.picture(os.path.join(room.folder, f"nothing-{width}.png"))


def a_class(room, count):
    """With seven connections, in each language: the overview, and the dialog that numbers them."""
    page = room.page()
    page.until(f"$('.bar p')?.textContent === '{count} of {count} online'", 180)
    for language in LANGUAGES:
        load(page, language, "$('.tile .value')?.textContent")
        page.until(f"$$('.tile .value').filter((el) => /\\d/.test(el.textContent)).length >= {count}", CONNECT)
        take(page, room, f"{count}-{language}")
        page.run("addDialog()")
        page.until("$('dialog .end button')")
        page.run("[...$$('dialog .end button')].find((el) => el.textContent === T.number).click()")
        page.until("$('dialog h2')?.textContent === T.number")
        take(page, room, f"{count}-numbering-{language}")


for count in (8, 25):
    scenario(
        "--services", "temperature,buttons,led", *SLOW, name=f"languages_of_{count}", devices=count, configuration=EVERY, links=7
    )(functools.partial(a_class, count=count))
