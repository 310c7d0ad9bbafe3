"""A client of Home Assistant's WebSocket API, used from plain threads."""

import asyncio
import itertools
import threading

import aiohttp
from journal import Failed, Journal

ANSWER = 30
"""Seconds that an answer may take."""


class WebSocket:
    """One connection; `events` has all events of Home Assistant's event bus."""

    def __init__(self, address, token):
        self.events = Journal()
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.run(self.open(address, token))
        self.ask("subscribe_events")

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(ANSWER)

    async def open(self, address, token):
        self.session = aiohttp.ClientSession()
        self.socket = await self.session.ws_connect(f"{address}/api/websocket", max_msg_size=0)
        await self.socket.receive_json()  # auth_required
        await self.socket.send_json({"type": "auth", "access_token": token})
        answer = await self.socket.receive_json()
        if answer["type"] != "auth_ok":
            raise Failed(f"Home Assistant refuses the token: {answer}")
        self.reader = self.loop.create_task(self.read())

    async def read(self):
        async for frame in self.socket:
            message = frame.json()
            if message["type"] == "event":
                self.events.append(message["event"])
            elif waiter := self.waiting.pop(message.get("id"), None):
                waiter.set_result(message)
        for waiter in self.waiting.values():
            waiter.set_exception(Failed("Home Assistant closed the connection"))

    def ask(self, kind, **keys):
        """The result of a command."""
        answer = self.run(self.exchange(kind, keys))
        if not answer["success"]:
            raise Failed(f"Home Assistant refuses {kind} {keys}: {answer['error']}")
        return answer["result"]

    async def exchange(self, kind, keys):
        number = next(self.numbers)
        self.waiting[number] = self.loop.create_future()
        await self.socket.send_json({"id": number, "type": kind, **keys})
        return await asyncio.wait_for(self.waiting[number], ANSWER)

    def close(self):
        self.run(self.socket.close())
        self.run(self.session.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
