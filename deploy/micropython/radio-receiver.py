# Receives MakeCode's senders with "transmit serial number", and forwards values: docs/radio.md.
from microbit import running_time, sleep, uart
import radio
import ustruct as struct

uart.init(115200)
radio.on()
radio.config(group=42, queue=10)

def text(data):
    try:
        return str(data[1:1 + data[0]], "utf-8")
    except (IndexError, UnicodeError):
        return "value"

form = '{"t":%d,"s":%d,"n":"%s","v":%s}'
written = b""
while True:
    written += uart.read() or b""
    if b"\n" in written:
        line, written = written.split(b"\n", 1)
        if line == b"hello":
            print("forwards")
        else:
            head = struct.pack("<BII", 2, running_time(), 0)
            radio.send_bytes(b"\x01\x00\x01" + head + bytes([len(line)]) + line)
    packet = radio.receive_full()
    if not packet:
        sleep(1)
        continue
    data = packet[0]
    if data[:3] != b"\x01\x00\x01" or len(data) < 13:
        continue
    kind, time, serial = struct.unpack("<BII", data[3:12])
    rest = data[12:]
    if kind == 2:
        print(text(rest))
        continue
    if kind in (0, 1) and len(rest) >= 4:
        value, rest = struct.unpack("<i", rest[:4])[0], rest[4:]
    elif kind in (4, 5) and len(rest) >= 8:
        value, rest = struct.unpack("<d", rest[:8])[0], rest[8:]
    else:
        continue
    name = text(rest) if kind in (1, 5) else "value"
    print(form % (time, serial, name, value))
