"""A session of bluezero, which uses dbus-python, with the simulated micro:bit. Arguments: its address, and the control socket
of the simulator. Run with DBUS_SYSTEM_BUS_ADDRESS set."""

import sys
import time

from bluezero import adapter, async_tools, microbit
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
picture = [0b01110, 0, 0, 0b10000, 0b01110]
device.pixels = picture
check("the LEDs are read back", device.pixels == picture, device.pixels)

pressed, calibrated = Heard(), Heard()
device.subscribe_button_a(pressed)
device.subscribe_calibrate(calibrated)


def comes(condition):
    """Runs bluezero's loop until it is so."""
    end = time.monotonic() + PATIENCE

    def look():
        if not condition() and time.monotonic() < end:
            return True
        device.quit_async()
        return False

    async_tools.add_timer_ms(20, look)
    device.run_async()
    return condition()


check("it notifies", comes(lambda: device._btn_a_state.notifying and device._magneto_calibrate.notifying))
happens("button", "01")
check("a button is notified", comes(pressed.qsize) and pressed.next() == 1)
device.calibrate()
check("a calibration ends", comes(calibrated.qsize) and calibrated.next() == 2)
device.disconnect()
