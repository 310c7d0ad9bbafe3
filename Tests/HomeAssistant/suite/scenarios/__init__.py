"""The scenarios by name, in their order: each a function of a house in which all is well, and leaves it so."""

from scenarios import pages, use, availability, removal, absence, gateways  # noqa: F401 (they register)
from scenarios.common import scenarios  # noqa: F401
