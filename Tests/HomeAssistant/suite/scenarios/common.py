"""The registry of the scenarios."""

import re

scenarios = {}


def scenario(accepts=()):
    """Registers a scenario by its name.

    `accepts` are patterns of records in Home Assistant's log that the scenario itself causes, each with its maximum
    count; any other warning or error fails the scenario.
    """

    def register(function):
        function.accepts = [(re.compile(pattern), most) for pattern, most in accepts]
        scenarios[function.__name__] = function
        return function

    return register
