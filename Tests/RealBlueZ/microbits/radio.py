"""An in-process radio that connects the controllers of the virtual peripherals and the kernel.

Bumble's LocalLink and Controller, changed where a central can notice a difference from real ones.
"""

import asyncio
import errno
import os
import random
import time

from bumble import hci, ll
from bumble.core import AdvertisingData
from bumble.controller import Controller, LegacyAdvertiser
from bumble.link import LocalLink

TIMED_OUT = 0x08
"""The HCI reason of a link that ends by its supervision time-out."""
NOT_ESTABLISHED = 0x3E
"""The HCI reason of a link whose first packets were never answered."""


def log(*words):
    print("%.4f" % time.monotonic(), *words, flush=True)


def later(seconds, function, *arguments):
    return asyncio.get_running_loop().call_later(seconds, function, *arguments)


def soon(function, *arguments):
    asyncio.get_running_loop().call_soon(function, *arguments)


class Air(LocalLink):
    """LocalLink with controllers that may be out of range.

    Bumble finds the other end of a link by the sender's random address, which a central with a public address, such
    as the kernel, does not have; here both addresses of the link are used.
    """

    def __init__(self):
        super().__init__()
        self.out_of_range = set()
        self.after_packets = {}
        """By a peripheral's address: how many packets more its links carry, and what to call then."""

    def heard_by(self, sender):
        if sender in self.out_of_range:
            return []
        return [c for c in self.controllers if c is not sender and c not in self.out_of_range]

    def send_acl_data(self, sender, dest, transport, data):
        link = sender.le_connections.get(dest)
        if link is None:
            return
        for controller in self.heard_by(sender):
            for other in controller.le_connections.values():
                if other.self_address == dest and other.peer_address == link.self_address:
                    soon(controller.on_link_acl_data, link.self_address, transport, data)
                    for address in (link.self_address, link.peer_address):
                        self.count_packet(address)
                    return

    def count_packet(self, address):
        if counted := self.after_packets.get(address):
            counted[0] -= 1
            if counted[0] == 0:
                del self.after_packets[address]
                soon(counted[1])

    def send_advertising_pdu(self, sender, packet):
        for controller in self.heard_by(sender):
            if not isinstance(packet, ll.AdvInd):
                soon(controller.on_ll_advertising_pdu, packet)
            elif isinstance(controller, Adapter):  # micro:bits do not scan
                soon(controller.on_advertisement, packet, sender)

    def send_ll_control_pdu(self, sender_address, receiver_address, packet):
        if any(
            link.self_address == sender_address
            for c in self.out_of_range
            for link in c.le_connections.values()
        ):
            return
        for controller in self.controllers:
            for link in controller.le_connections.values():
                if link.self_address == receiver_address and link.peer_address == sender_address:
                    if controller not in self.out_of_range:
                        soon(controller.on_ll_control_pdu, sender_address, packet)
                    return

    def cut(self, address, reason):
        """Ends the link of the peripheral with that address, at both ends."""
        for controller in self.controllers:
            for link in list(controller.le_connections.values()):
                if address in (link.self_address, link.peer_address):
                    controller.on_le_disconnected(link, reason)


class Advertiser(LegacyAdvertiser):
    """Advertises with the interval in its real unit (0.625 ms) and the random delay of up to 10 ms."""

    def _on_timer_fired(self):
        self.send_advertising_data()
        if self.enabled:
            interval = self.advertising_interval_min * 0.625e-3
            self.timer_handle = later(interval + random.random() * 0.01, self._on_timer_fired)


class LinkController(Controller):
    """A controller of an LE 4.2 device; a link that ended is not ended again."""

    le_features = (
        hci.LeFeatureMask.LE_ENCRYPTION
        | hci.LeFeatureMask.CONNECTION_PARAMETERS_REQUEST_PROCEDURE
        | hci.LeFeatureMask.EXTENDED_REJECT_INDICATION
        | hci.LeFeatureMask.PERIPHERAL_INITIATED_FEATURE_EXCHANGE
        | hci.LeFeatureMask.LE_PING
        | hci.LeFeatureMask.LE_DATA_PACKET_LENGTH_EXTENSION
    )
    le_acl_data_packet_length = 251

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.le_legacy_advertiser = Advertiser(self)

    def on_le_disconnected(self, connection, reason):
        if connection.peer_address in self.le_connections:
            super().on_le_disconnected(connection, reason)

    def on_ll_control_pdu(self, sender_address, packet):
        if sender_address in self.le_connections:
            super().on_ll_control_pdu(sender_address, packet)

    def on_hci_disconnect_command(self, command):
        link = self.find_le_connection_by_handle(command.connection_handle)
        if link is None:
            unknown = hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR
            self._send_hci_command_status(unknown, command.op_code)
            return
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        link.send_ll_control_pdu(ll.TerminateInd(command.reason))
        # The side that ends the link sees 0x16, not the reason that it gave to the other.
        self.on_le_disconnected(link, hci.HCI_ErrorCode.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)


class Adapter(LinkController):
    """The controller that the kernel sees as hci0: LE only, legacy advertising and scanning."""

    supported_max_tx_octets = supported_max_rx_octets = 251

    feature_exchange = 0.06
    """Seconds that a link's feature exchange takes: a real one needs some connection events. Without the wait
    Device1.Connect can answer before Connected becomes true."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.reported = set()
        self.accept_list = set()
        self.supervision = 0.42
        self.deaf = {}
        """Addresses that hear no connection request, and what to call for each request."""
        self.unstable = set()
        """Addresses whose links fail at once."""
        self.most_links = None
        """How many links it can have; None: any number."""
        self.refuses_scans = False
        """Until it is reset, which a change of its power does."""

    def on_ll_control_pdu(self, sender_address, packet):
        if isinstance(packet, ll.FeatureRsp):
            later(self.feature_exchange, super().on_ll_control_pdu, sender_address, packet)
        else:
            super().on_ll_control_pdu(sender_address, packet)

    def on_hci_reset_command(self, command):
        self.le_scan_enable = False
        self.refuses_scans = False
        self.pending_le_connection = None
        self.accept_list.clear()
        self.le_legacy_advertiser.stop()
        for link in list(self.le_connections.values()):
            power_off = hci.HCI_ErrorCode.REMOTE_DEVICE_TERMINATED_CONNECTION_DUE_TO_POWER_OFF_ERROR
            link.send_ll_control_pdu(ll.TerminateInd(power_off))
            del self.le_connections[link.peer_address]
        log("adapter: reset")
        return super().on_hci_reset_command(command)

    def on_hci_le_set_scan_enable_command(self, command):
        self.reported.clear()
        if self.refuses_scans and command.le_scan_enable:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.HARDWARE_FAILURE_ERROR)
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_clear_filter_accept_list_command(self, command):
        self.accept_list.clear()
        return super().on_hci_le_clear_filter_accept_list_command(command)

    def on_hci_le_add_device_to_filter_accept_list_command(self, command):
        self.accept_list.add(bytes(command.address))
        return super().on_hci_le_add_device_to_filter_accept_list_command(command)

    def on_hci_le_remove_device_from_filter_accept_list_command(self, command):
        self.accept_list.discard(bytes(command.address))
        return super().on_hci_le_remove_device_from_filter_accept_list_command(command)

    def on_hci_le_create_connection_cancel_command(self, command):
        pending = self.pending_le_connection
        if pending is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        self.pending_le_connection = None
        cancelled = hci.HCI_LE_Connection_Complete_Event(
            status=hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR,
            connection_handle=0,
            role=0,
            peer_address_type=pending.peer_address.address_type,
            peer_address=pending.peer_address,
            connection_interval=0,
            peripheral_latency=0,
            supervision_timeout=0,
            central_clock_accuracy=0,
        )
        later(0.005, self.send_hci_packet, cancelled)
        return super().on_hci_le_create_connection_cancel_command(command)

    def on_hci_le_create_connection_command(self, command):
        if self.most_links is not None and len(self.le_connections) >= self.most_links:
            log("adapter: too many links")
            limit = hci.HCI_ErrorCode.CONNECTION_LIMIT_EXCEEDED_ERROR
            return self._send_hci_command_status(limit, command.op_code)
        return super().on_hci_le_create_connection_command(command)

    def create_le_connection(self, peer_address):
        self.supervision = getattr(self.pending_le_connection, "supervision_timeout", 42) * 0.01
        log("adapter: link to", peer_address, "supervision %.2f s" % self.supervision)
        super().create_le_connection(peer_address)

    def on_advertisement(self, packet, sender):
        address = packet.advertiser_address
        pending = self.pending_le_connection
        if pending and pending.peer_address == address:
            if unheard := self.deaf.get(bytes(address)):
                unheard()
                return
            self.create_le_connection(address)
            if bytes(address) in self.unstable:
                later(0.05, self.link.cut, address, NOT_ESTABLISHED)
        elif self.le_scan_enable:
            self.report(address, packet, sender)

    def report(self, address, packet, sender):
        if self.le_scanning_filter_policy & 1 and bytes(address) not in self.accept_list:
            return
        if self.filter_duplicates:
            if bytes(address) in self.reported:
                return
            self.reported.add(bytes(address))
        event = hci.HCI_LE_Advertising_Report_Event
        answers = [(event.EventType.ADV_IND, packet.data)]
        if self.le_scan_type == 1:
            answers.append((event.EventType.SCAN_RSP, sender.le_legacy_advertiser.scan_response_data))
        rssi = -50 + random.randint(-3, 3)
        for kind, data in answers:
            report = event.Report(
                event_type=kind, address_type=address.address_type, address=address, data=data, rssi=rssi
            )
            self.send_hci_packet(event([report]))


async def spread(items, seconds):
    """Each item in turn, over so many seconds, in at most twenty groups a second: each wait costs more than what it is for."""
    size = max(1, round(len(items) / (20 * seconds)))
    for start in range(0, len(items), size):
        group = items[start : start + size]
        for item in group:
            yield item
        await asyncio.sleep(seconds * len(group) / len(items))


class Crowd:
    """Advertises once a second under each of many addresses, with another name each time. It accepts no connection."""

    scan_response_data = b""

    def __init__(self, adapter, count, name):
        self.adapter = adapter
        self.name = name
        self.le_legacy_advertiser = self
        self.addresses = [hci.Address.generate_static_address() for _ in range(count)]
        for address in self.addresses:
            adapter.deaf[bytes(address)] = lambda: True
        self.next = asyncio.create_task(self.advertise())

    async def advertise(self):
        while True:
            async for address in spread(self.addresses, 1):
                letters = "".join(random.choices("zvgptuoiea", k=5))
                fields = [
                    (AdvertisingData.FLAGS, bytes([0x06])),
                    (AdvertisingData.COMPLETE_LOCAL_NAME, (self.name % letters).encode()),
                ]
                packet = ll.AdvInd(advertiser_address=address, data=bytes(AdvertisingData(fields)))
                self.adapter.on_advertisement(packet, self)

    def stop(self):
        self.next.cancel()


class Beacons:
    """Non-connectable advertisers: each sends service data under an address of its own, as MakeCode's Eddystone does."""

    INTERVAL = 0.4

    scan_response_data = b""

    def __init__(self, adapter, service, data):
        self.adapter = adapter
        self.service = service
        self.data = data
        self.le_legacy_advertiser = self
        self.addresses = [hci.Address.generate_static_address() for _ in data]
        for address in self.addresses:
            adapter.deaf[bytes(address)] = lambda: True
        self.next = asyncio.create_task(self.advertise())

    async def advertise(self):
        while True:
            async for address, data in spread(list(zip(self.addresses, self.data)), self.INTERVAL):
                if data is not None:
                    fields = [
                        (AdvertisingData.FLAGS, bytes([0x06])),
                        (AdvertisingData.SERVICE_DATA_16_BIT_UUID, self.service + data),
                    ]
                    packet = ll.AdvInd(advertiser_address=address, data=bytes(AdvertisingData(fields)))
                    self.adapter.on_advertisement(packet, self)


class Vhci:
    """Gives a controller to the kernel through /dev/vhci, one packet per read or write.

    Bumble's own transport closes the adapter for good when a write fails because it is down (ENXIO).
    """

    def __init__(self, controller):
        self.controller = controller
        controller.host = self
        self.open()

    def open(self):
        self.fd = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK)
        os.write(self.fd, b"\xff\x00")  # vendor packet: make a primary controller
        asyncio.get_running_loop().add_reader(self.fd, self.readable)

    def readable(self):
        while True:
            try:
                data = os.read(self.fd, 8192)
            except BlockingIOError:
                return
            if data[0] == 0xFF:
                log("adapter: hci%d" % (data[2] | data[3] << 8))
            else:
                self.controller.on_packet(data)

    def on_packet(self, data):
        if self.fd is None:
            return
        try:
            os.write(self.fd, data)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise

    def unplug(self):
        """Removes the adapter, as if a USB stick were unplugged: its links fail."""
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)
        self.fd = None
        air = self.controller.link
        for link in list(self.controller.le_connections.values()):
            air.cut(link.peer_address, TIMED_OUT)
        air.remove_controller(self.controller)

    def plug(self):
        """Adds it again. The kernel gives it another name while a program holds the old one."""
        controller = self.controller
        controller.le_scan_enable = False
        controller.pending_le_connection = None
        controller.accept_list.clear()
        controller.le_connections.clear()
        controller.link.add_controller(controller)
        self.open()
