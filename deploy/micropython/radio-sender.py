# Sends the temperature to any of the receivers of docs/radio.md; "led" can be set from 0 to 9.
from microbit import Image, display, running_time, sleep, temperature
import machine
import radio
import random
import ustruct as struct

serial = struct.unpack("<II", machine.unique_id())[1]
name, rest = "", serial % 3125
for place in range(5):
    name = ("uoiea" if place % 2 else "zvgpt")[rest % 5] + name
    rest //= 5

def send(text):
    text = text.encode()[:19]
    head = struct.pack("<BII", 2, running_time(), serial)
    radio.send_bytes(b"\x01\x00\x01" + head + bytes([len(text)]) + text)

radio.on()
radio.config(group=42, queue=10)
following = 0
while True:
    if running_time() >= following:
        send(name + ",temp," + str(temperature()))
        following = running_time() + random.randint(500, 1500)
    packet = radio.receive_full()
    if packet and packet[0][3:4] == b"\x02":
        data = packet[0]
        try:
            text = str(data[13:13 + data[12]], "utf-8")
            if text.startswith(name + ">led:"):
                light = min(9, max(0, int(float(text[10:]))))
                display.show(Image(5, 5).invert() * (light / 9))
                sleep(random.randint(20, 200))
                send(name + ",led," + str(light))
        except (ValueError, IndexError, OverflowError):
            pass
    sleep(10)
