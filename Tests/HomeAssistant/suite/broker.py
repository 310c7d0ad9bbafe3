"""A private mosquitto, and everything that is published on it."""

import json
import os
import signal
import threading
import time
from dataclasses import dataclass

import paho.mqtt.client as paho
from journal import Failed, Journal, expect
from processes import START, Process, free_port


@dataclass
class Message:
    topic: str
    payload: str
    retain: bool

    def json(self):
        try:
            return json.loads(self.payload)
        except ValueError:
            raise Failed(f"{self.topic} is no JSON: {self.payload}") from None

    def __str__(self):
        return f"{self.topic} {self.payload}{' (retained)' if self.retain else ''}"


class Observer:
    """A client that receives every message and can publish."""

    def __init__(self, port, seen):
        self.subscribed = threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self.client.on_message = lambda _, __, message: seen(message)
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.client.connect("127.0.0.1", port, clean_start=True)
        self.client.subscribe("#", options=paho.SubscribeOptions(qos=1, retainAsPublished=True))
        self.client.loop_start()
        expect(self.subscribed.wait(START), "the broker does not answer a subscription")

    def publish(self, topic, payload, retain):
        sent = self.client.publish(topic, payload, qos=1, retain=retain)
        sent.wait_for_publish(START)
        expect(sent.is_published(), f"the broker does not confirm {topic}")

    def leave(self):
        self.client.disconnect()
        self.client.loop_stop()


class Broker:
    def __init__(self, folder):
        self.folder = folder
        self.messages = Journal()
        self.port = free_port()
        self.server = self.observer = None
        self.configuration = os.path.join(folder, "mosquitto.conf")
        with open(self.configuration, "w") as file:
            file.write(
                f"listener {self.port} 127.0.0.1\n"
                "allow_anonymous true\n"
                "log_dest stderr\n"
                # Retained messages survive a restart, as they do in normal use.
                f"persistence true\npersistence_location {folder}/\n"
            )
            if os.geteuid() == 0:
                file.write("user root\n")
        self.start()

    def start(self):
        self.server = Process("mosquitto", ["mosquitto", "-c", self.configuration], self.folder)
        self.server.wait_line(" running\n")  # and not "running mosquitto as user"
        self.observer = Observer(self.port, self.see)

    def stop(self):
        self.observer.leave()
        self.server.end(signal.SIGTERM)

    def forget(self):
        """Deletes the retained messages; only while the broker is stopped."""
        os.remove(os.path.join(self.folder, "mosquitto.db"))

    def see(self, message):
        seen = Message(message.topic, message.payload.decode(errors="replace"), message.retain)
        with open(os.path.join(self.folder, "messages.log"), "a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {seen}\n")
        self.messages.append(seen)

    def publish(self, topic, payload, retain=False):
        if not isinstance(payload, str):
            payload = json.dumps(payload, ensure_ascii=False)
        self.observer.publish(topic, payload, retain)

    def wait(self, topic, within, wanted=lambda message: True, after=0, what="message"):
        return self.messages.wait(
            lambda message: message.topic == topic and wanted(message), within, f"{what} on {topic}", after
        )

    def retained(self):
        """The retained messages, as a new client gets them: payloads by topic."""
        kept = {}
        marker = "rig/end-of-retained"
        done = threading.Event()

        def see(message):
            if message.topic == marker:
                done.set()
            elif message.retain:
                kept[message.topic] = message.payload.decode(errors="replace")

        # A broker sends retained messages before messages that are published later.
        late = Observer(self.port, see)
        late.publish(marker, "", False)
        expect(done.wait(START), "the broker does not send what was published")
        late.leave()
        return kept
