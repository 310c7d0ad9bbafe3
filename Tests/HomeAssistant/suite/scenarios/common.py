"""The registry of the scenarios."""

import re

scenarios = {}


def scenario(accepts=()):
    """Registers a scenario by its name.

    `accepts` are patterns of records of Home Assistant's log that belong to what the scenario does, with how often
    they may come; every other warning or error is the gateway's fault.
    """

    def register(function):
        function.accepts = [(re.compile(pattern), most) for pattern, most in accepts]
        scenarios[function.__name__] = function
        return function

    return register
