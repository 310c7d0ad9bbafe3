"""A real Home Assistant with a folder and a port of its own, used as its user interface uses it."""

import json
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from journal import Failed, expect
from processes import START, Process, free_port
from websocket import ANSWER, WebSocket

CONFIGURATION = """\
http:
  server_host: 127.0.0.1
  server_port: {port}
logger:
  default: warning
  logs:
    homeassistant.components.mqtt: info
automation: !include automations.yaml
"""
NEWER = (2026, 11)
"""From this version on, other forms and requests hold than in that of scripts/homeassistant-venv."""
BLUEPRINTS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))),
    "deploy/home-assistant/blueprints",
)
"""Those that users copy into their configuration."""
CALM = ("DEBUG", "INFO")
ITS_OWN = (
    "homeassistant.bootstrap",
    "aiohttp_fast_zlib",
    "homeassistant.components.camera.img_util",
    "haffmpeg.core",
    "haffmpeg.tools",
)
"""Loggers of what it complains of at every start, with or without a gateway."""
RECORD = re.compile(r"\S+ \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) \(\S+\) \[(\S+)\] ")


class HomeAssistant:
    def __init__(self, folder):
        self.folder = folder
        self.configuration = os.path.join(folder, "homeassistant")
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process = self.socket = self.token = self.entry = None
        self.complaints = []
        os.makedirs(self.configuration)
        with open(os.path.join(self.configuration, "configuration.yaml"), "w") as file:
            file.write(CONFIGURATION.format(port=self.port))
        with open(os.path.join(self.configuration, "automations.yaml"), "w") as file:
            file.write("[]\n")
        shutil.copytree(BLUEPRINTS, os.path.join(self.configuration, "blueprints"))

    # Life

    def start(self):
        hass = os.path.join(os.path.dirname(sys.executable), "hass")
        command = [hass, "--config", self.configuration, "--skip-pip"]
        self.process = Process("home-assistant", command, self.folder)
        self.read_to = 0
        self.wait_for_port()
        if not self.token:
            self.create_user()
        self.socket = WebSocket(self.address, self.token)
        self.until("is running", lambda: self.socket.ask("get_config")["state"] == "RUNNING", START)
        version = self.socket.ask("get_config")["version"]
        self.is_newer = tuple(int(part) for part in version.split(".")[:2]) >= NEWER
        if self.is_newer and self.socket.ask("http/config")["pending"]:
            # As its dialog asks a user to: it would go back to its own port after five minutes.
            self.socket.ask("http/config/promote")

    def wait_for_port(self):
        # Nothing announces when it accepts connections: poll.
        deadline = time.monotonic() + START
        while True:
            try:
                return self.get("/api/onboarding")
            except (OSError, Failed):
                expect(self.process.runs, f"Home Assistant ended by itself: see {self.process.path}")
                expect(time.monotonic() < deadline, f"Home Assistant does not answer within {START} s")
                time.sleep(0.1)

    def stop(self):
        if self.socket:
            self.socket.close()
            self.socket = None
        self.process.end()
        self.read_log()

    def restart(self):
        self.stop()
        self.start()

    # HTTP

    def get(self, path):
        return self.request(urllib.request.Request(self.address + path))

    def post(self, path, data):
        body = json.dumps(data).encode()
        return self.request(
            urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"})
        )

    def delete_resource(self, path):
        return self.request(urllib.request.Request(self.address + path, method="DELETE"))

    def request(self, request):
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise Failed(f"{request.full_url}: {error} {error.read()[:500]}") from None

    def create_user(self):
        """The first page of its setup. The further pages would make it search the network for devices."""
        client = self.address + "/"
        code = self.post(
            "/api/onboarding/users",
            {
                "name": "Rig",
                "username": "rig",
                "password": "of no use elsewhere",
                "client_id": client,
                "language": "en",
            },
        )["auth_code"]
        form = {"grant_type": "authorization_code", "code": code, "client_id": client}
        body = urllib.parse.urlencode(form).encode()
        self.token = self.request(urllib.request.Request(f"{self.address}/auth/token", body))["access_token"]

    def add_mqtt(self, broker_port, **login):
        """Settings, Devices & services, Add integration, MQTT; the login has the keys username and password."""
        flow = self.post("/api/config/config_entries/flow", {"handler": "mqtt"})
        form = {"broker": "127.0.0.1", "port": broker_port, **login}
        if self.is_newer:  # in a part that is folded up, with what its page fills in
            form["other_settings"] = {"set_client_cert": False, "set_ca_cert": "off"}
        done = self.post(f"/api/config/config_entries/flow/{flow['flow_id']}", form)
        expect(done["type"] == "create_entry", f"the MQTT integration was not added: {done}")
        self.entry = done["result"]["entry_id"]

    # What it shows

    def until(self, what, check, within):
        """Waits until `check()` is true, checking again at each event; returns its value."""
        deadline = time.monotonic() + within
        while True:
            mark = self.socket.events.mark()
            if value := check():
                return value
            remaining = deadline - time.monotonic()
            complaint = f"'{what}' did not come true in Home Assistant"
            expect(remaining > 0, f"within {within} s {complaint}")
            try:
                # Not everything has an event: also check at intervals.
                self.socket.events.wait(lambda event: True, min(remaining, 1), "event", mark)
            except Failed:
                pass

    def devices(self):
        """Those of the MQTT integration, by name."""
        devices = self.socket.ask("config/device_registry/list")
        return {
            device["name_by_user"] or device["name"]: device
            for device in devices
            if self.entry in device["config_entries"]
        }

    def entities(self, device):
        """The entities of a device's page, by their own names; each with its state under "state"."""
        states = {state["entity_id"]: state for state in self.socket.ask("get_states")}
        return {
            entity["original_name"]: entity | {"state": states.get(entity["entity_id"])}
            for entity in self.socket.ask("config/entity_registry/list")
            if entity["device_id"] == device["id"]
        }

    def list_entities(self, device):
        """Those of a device's page; several may have the same name."""
        registry = self.socket.ask("config/entity_registry/list")
        return [entity for entity in registry if entity["device_id"] == device["id"]]

    def state_of(self, entity_id):
        """None without one."""
        states = self.socket.ask("get_states")
        return next((state["state"] for state in states if state["entity_id"] == entity_id), None)

    def triggers(self, device):
        """What automations can start with on the device's page."""
        return self.socket.ask("device_automation/trigger/list", device_id=device["id"])

    def notifications(self):
        """Those in the sidebar, by id."""
        shown = self.socket.ask("persistent_notification/get")
        return {notification["notification_id"]: notification for notification in shown}

    def blueprints(self):
        """Those for automations, by path."""
        return self.socket.ask("blueprint/list", domain="automation")

    def areas(self):
        """Names by id."""
        return {area["area_id"]: area["name"] for area in self.socket.ask("config/area_registry/list")}

    # The user's actions

    def call(self, domain, service, entity_id, **data):
        self.socket.ask(
            "call_service",
            domain=domain,
            service=service,
            service_data=data,
            target={"entity_id": entity_id},
        )

    def delete(self, device):
        """Delete, on the device's page."""
        if self.is_newer:
            self.socket.ask("config/device_registry/remove", device_id=device["id"])
        else:
            self.socket.ask(
                "config/device_registry/remove_config_entry",
                device_id=device["id"],
                config_entry_id=self.entry,
            )

    def enable(self, entity_id):
        """Enabled, in the entity's settings; Home Assistant sets it up half a minute later."""
        self.socket.ask("config/entity_registry/update", entity_id=entity_id, disabled_by=None)

    def save_automation(self, name, blueprint, **inputs):
        """Settings, Automations, Create from a blueprint; or Edit, if there is one of that name."""
        self.automate(name, use_blueprint={"path": blueprint, "input": inputs})

    def automate(self, name, **automation):
        """Settings, Automations, Create; or Edit, if there is one of that name."""
        self.post(f"/api/config/automation/config/{name}", {"alias": name, **automation})
        self.until(f"the automation {name} is on", lambda: self.state_of(f"automation.{name}") == "on", ANSWER)

    def delete_automation(self, name):
        self.delete_resource(f"/api/config/automation/config/{name}")
        self.until(f"the automation {name} is gone", lambda: self.state_of(f"automation.{name}") is None, ANSWER)

    # Its warnings and errors

    def read_log(self):
        """Notes the records since the last call that are warnings or worse, each with all its lines."""
        records = []
        for line in self.process.output.since(self.read_to):
            if found := RECORD.match(line):
                records.append((found[1], found[2], line))
            elif records:
                level, logger, text = records[-1]
                records[-1] = (level, logger, f"{text}\n{line}")
        self.read_to = self.process.output.mark()
        self.complaints += [
            text for level, logger, text in records if level not in CALM and logger not in ITS_OWN
        ]

    def expect_no_complaints(self, accepts=()):
        """Since the last call, except those that match a pattern, up to its maximum count."""
        self.read_log()
        found, self.complaints = self.complaints, []
        for pattern, most in accepts:
            matching = [text for text in found if pattern.search(text)]
            expect(len(matching) <= most, f"Home Assistant says {len(matching)} times: {matching[:1]}")
            found = [text for text in found if text not in matching]
        expect(not found, "\n".join(["Home Assistant complains:", *found]))
