"""A session of bluezero, which uses dbus-python, with the simulated micro:bit. Arguments: its address, and the control socket
of the simulator. Run with DBUS_SYSTEM_BUS_ADDRESS set."""

import sys
import threading
import time

from bluezero import adapter, microbit
from steps import PATIENCE, Heard, check, happens

dongle = next(iter(adapter.Adapter.available()))
check("the adapter is on", dongle.powered)
dongle.nearby_discovery(timeout=3)
device = microbit.Microbit(sys.argv[1], dongle.address)
device.connect()
end = time.monotonic() + PATIENCE
while not device.connected and time.monotonic() < end:
    time.sleep(0.1)
check("it is connected", device.connected)
check("it has a name", device.name == "BBC micro:bit [zugev]", device.name)
check("its services are known by name", "Temperature Service" in device.services_available())
check("it has a temperature", 10 < device.temperature < 40)
check("the acceleration is that of rest", abs(device.accelerometer[2] + 1.0) < 0.1, device.accelerometer)
device.scroll_delay = 90
check("the scrolling delay is read back", device.scroll_delay == 90)
device.pixels = [0b01110, 0, 0, 0, 0b01110]
check("the LEDs are read back", device.pixels[0].endswith("01110"), device.pixels)

pressed, calibrated = Heard(), Heard()
device.subscribe_button_a(pressed)
device.subscribe_calibrate(calibrated)
loop = threading.Thread(target=device.run_async, daemon=True)
loop.start()
happens("button", "01")
check("a button is notified", pressed.next() == 1)
device.calibrate()
check("a calibration ends", calibrated.next() == 2)
device.quit_async()
loop.join(PATIENCE)
device.disconnect()
