"""The scenarios by name, in order. Each gets a `House` in which everything works, and leaves it in that state."""

from scenarios import pages, use, programs, field, classroom, availability, removal, absence, gateways, blueprints, classes  # noqa: F401 (they register)
from scenarios.common import scenarios  # noqa: F401
