"""A session of KaspersMicrobit, a library for schools, with the simulated micro:bit. Arguments: its address, and the control
socket of the simulator. Run with DBUS_SYSTEM_BUS_ADDRESS set."""

import sys

from kaspersmicrobit import KaspersMicrobit
from kaspersmicrobit.services.event import Event
from kaspersmicrobit.services.io_pin import Pin, PinAD, PinIO, PinValue
from steps import PATIENCE, Heard, check, happens

from bleak import BleakScanner
import asyncio

BUTTON_A = 1
DOWN, CLICK = 1, 3

check("it is found", asyncio.run(BleakScanner.find_device_by_address(sys.argv[1], timeout=PATIENCE)))
with KaspersMicrobit(sys.argv[1]) as microbit:
    information = microbit.device_information
    check("it is a V2", information.read_model_number() == "BBC micro:bit V2")

    check("it has a temperature", 10 < microbit.temperature.read() < 40)
    microbit.temperature.set_period(100)
    check("its period is read back", microbit.temperature.read_period() == 100)
    heard = Heard()
    microbit.temperature.notify(heard)
    check("temperatures are notified", 10 < heard.next() < 40)

    heard = Heard()
    microbit.accelerometer.notify(heard)
    samples = [heard.next() for _ in range(20)]
    check("the acceleration is that of rest", all(abs(s.x) < 50 and abs(s.z + 1024) < 50 for s in samples), samples)
    check("no sensor is without noise", len({(s.x, s.y, s.z) for s in samples}) > 1, samples)

    heard = Heard()
    microbit.magnetometer.notify_data(heard)
    check("the magnetic field is notified by itself", heard.next() is not None)
    check("a calibration ends", microbit.magnetometer.calibrate().wait_for_result(PATIENCE) == 2)

    pressed, raised = Heard(), Heard()
    microbit.buttons.on_button_a(press=pressed)
    microbit.events.notify_microbit_event(raised)
    happens("button", "01")
    check("a button is notified", pressed.next() == "A")
    happens("button", "00")
    microbit.events.write_client_requirements(Event(BUTTON_A, CLICK))
    happens("button", "01")
    happens("button", "00")
    event = raised.next()
    check("the first event is the one that is required", (event.device_id, event.event_value) == (BUTTON_A, CLICK), event)

    pins = microbit.io_pin
    kinds, directions = pins.read_ad_configuration(), pins.read_io_configuration()
    directions[Pin.P0], directions[Pin.P1] = PinIO.INPUT, PinIO.OUTPUT
    kinds[Pin.P0] = PinAD.DIGITAL
    pins.write_ad_configuration(kinds)
    pins.write_io_configuration(directions)
    check("the directions of the pins are read back", pins.read_io_configuration()[Pin.P0] == PinIO.INPUT)
    pins.write_data([PinValue(Pin.P0, 1), PinValue(Pin.P1, 1)])
    values = {value.pin: value.value for value in pins.read_data()}
    check("there is a value for each input pin, which is not written", values == {Pin.P0: 0}, values)
    happens("pins", "0001")
    values = {value.pin: value.value for value in pins.read_data()}
    check("an input pin has what is connected to it", values == {Pin.P0: 1}, values)

    heard = Heard()
    microbit.uart.receive_string(heard)
    happens("uart", "48690a")
    check("a line is received", heard.next() == "Hi\n")
    microbit.uart.send_string("Hello\n")
    microbit.led.show_text("Hi")
    microbit.led.set_scrolling_delay(80)
    check("the scrolling delay is read back", microbit.led.get_scrolling_delay() == 80)
