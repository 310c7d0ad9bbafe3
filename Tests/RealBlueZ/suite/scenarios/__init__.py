"""The scenarios by name: each a function of a World of its own, in a guest of its own."""

from scenarios import (
    # The longest first.
    random_faults,
    hostile,
    beacons,
    turns,
    command_line,
    data_log,
    field_reports,
    commands,
    finding,
    microbit_faults,
    pairing,
    microbit_services,
    on_demand,
    peripheral,
    profiles,
    service_changed,
    services,
    shared_adapter,
    subscriptions,
    system_faults,
    two_adapters,
)  # noqa: F401 (they register)
from scenarios.common import scenarios  # noqa: F401
