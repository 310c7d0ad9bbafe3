"""Headless Chromium, driven by the DevTools protocol over its pipe."""

import base64
import itertools
import json
import os
import shlex
import subprocess
import threading

from journal import Failed, Journal

ANSWER = 240
"""Seconds that an answer may take."""
MOMENT = 10
"""Seconds until a page shows something."""
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}

PRELUDE = """
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const tile = (name) => $$('.tile').find((el) => $('h2', el).textContent === name);
const card = (title) => $$('.card').find((el) => el.getAttribute('aria-label') === title);
const nameOf = (el) => el.getAttribute('aria-label') ?? el.labels?.[0]?.textContent ?? el.textContent;
const controls = 'button, a, input, summary';
const named = (name, root = document) => $$(controls, root).find((el) => nameOf(el).startsWith(name));
const value = (name) => $('.hero .value', tile(name)).textContent;
const state = (name) => $('.state', tile(name)).textContent;
"""
"""What a scenario's expressions may use."""


class Browser:
    def __init__(self, folder, *options):
        here, there = os.pipe(), os.pipe()
        # It reads commands from descriptor 3, and writes answers to 4.
        shell = (
            f"exec 3<&{here[0]} 4>&{there[1]}; exec chromium --headless --no-sandbox --remote-debugging-pipe "
            f"--user-data-dir={folder}/profile --no-first-run --disable-gpu --hide-scrollbars --lang=en-US "
            f"{shlex.join(options)} about:blank"
        )
        with open(os.path.join(folder, "chromium.log"), "w") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "bash", "-c", shell], pass_fds=(here[0], there[1]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        os.close(here[0])
        os.close(there[1])
        self.commands, self.answers = os.fdopen(here[1], "wb", 0), os.fdopen(there[0], "rb", 1 << 16)
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.events = Journal()
        threading.Thread(target=self.read, daemon=True).start()
        self.version = self.ask("Browser.getVersion")["product"]

    def read(self):
        rest = b""
        while some := self.answers.read1(1 << 16):
            *messages, rest = (rest + some).split(b"\0")
            for message in map(json.loads, messages):
                if waiter := self.waiting.pop(message.get("id"), None):
                    waiter.append(message)
                else:
                    self.events.append(message)

    def ask(self, method, session=None, **parameters):
        waiter = Journal()
        number = next(self.numbers)
        self.waiting[number] = waiter
        message = {"id": number, "method": method, "params": parameters}
        self.commands.write(json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        answer = waiter.wait(lambda _: True, ANSWER, f"answer to {method}")
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']}")
        return answer["result"]

    def complaints(self):
        """What pages have reported as errors."""
        texts = []
        for event in self.events.since():
            detail = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                thrown = detail["exceptionDetails"]
                texts.append(thrown.get("exception", {}).get("description", thrown["text"]))
            # What the network refuses during an outage is reported by the browser itself.
            elif event["method"] == "Log.entryAdded" and detail["entry"]["source"] != "network":
                if detail["entry"]["level"] == "error":
                    texts.append(detail["entry"]["text"])
        return texts

    def end(self):
        self.ask("Browser.close")
        self.process.wait(ANSWER)


class Page:
    """A tab."""

    def __init__(self, browser, address, width=1280, height=900, dark=False, still=False, window=True):
        """Without a window of its own, it covers another page."""
        self.browser = browser
        self.target = browser.ask("Target.createTarget", url="about:blank", newWindow=window)["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(dark, still)
        self.ask("Page.navigate", url=address)

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def resize(self, width, height):
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, dark, still=False):
        features = {"prefers-color-scheme": "dark" if dark else "light"}
        features["prefers-reduced-motion"] = "reduce" if still else "no-preference"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": n, "value": v} for n, v in features.items()])

    def log_in(self, address, password):
        login = base64.b64encode(f"a:{password}".encode()).decode()
        self.ask("Network.enable")
        self.ask("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {login}"})
        self.ask("Page.navigate", url=address)

    def expect_login(self):
        """The next page that asks for a password waits for `log_in_by_dialog`."""
        self.mark = self.browser.events.mark()
        self.ask("Fetch.enable", handleAuthRequests=True, patterns=[{"resourceType": "Document"}])

    def log_in_by_dialog(self, user, password, within=MOMENT):
        """As a person does in the browser's own dialog."""
        paused = ("Fetch.requestPaused", "Fetch.authRequired")
        for count in itertools.count(1):
            event = self.browser.events.collect(
                lambda e: e["method"] in paused, count, within, "page with a password", self.mark
            )[-1]
            request = event["params"]["requestId"]
            if event["method"] == "Fetch.authRequired":
                break
            self.ask("Fetch.continueRequest", requestId=request)
        login = {"response": "ProvideCredentials", "username": user, "password": password}
        self.ask("Fetch.continueWithAuth", requestId=request, authChallengeResponse=login)
        self.ask("Fetch.disable")

    def run(self, expression):
        answer = self.ask(
            "Runtime.evaluate", expression=f"(() => {{ {PRELUDE} return ({expression}); }})()",
            awaitPromise=True, returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise Failed(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def until(self, expression, within=MOMENT):
        """The value of the expression, as soon as there is one."""
        value = self.run(
            f"""new Promise((resolve) => {{
              const end = performance.now() + {within * 1000};
              const look = async () => {{
                let met;
                try {{ met = await ({expression}); }} catch {{ /* not yet */ }}
                if (met || performance.now() > end) resolve(met instanceof Node || met); else setTimeout(look, 20);
              }};
              look();
            }})"""
        )
        if not value:
            shown = self.run("document.body.innerText").replace("\n", " | ")
            raise Failed(f"within {within} s it did not become true: {expression}\n  the page: {shown[:3000]}")
        return value

    def click(self, element):
        """Clicks with the mouse at the middle of an element."""
        x, y = self.until(
            f"""(() => {{
              const el = {element};
              if (!el || el.disabled) return null;
              el.scrollIntoView({{ block: 'center', behavior: 'instant' }});
              const box = el.getBoundingClientRect();
              return box.width ? [box.x + box.width / 2, box.y + box.height / 2] : null;
            }})()"""
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name):
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=KEYS[name], **text)

    def type(self, element, text):
        """Replaces what a field has."""
        self.click(element)
        self.run(f"({element}).select()")
        self.ask("Input.insertText", text=text)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def go(self, fragment):
        self.run(f"location.hash = {json.dumps(fragment)}")

    def close(self):
        self.ask("Page.close")
