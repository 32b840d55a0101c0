"""Counters of ports as `show` commands tell them, in the forms of `delivered/counters.json`: all zero but for what a test lays in the fault
`counters` (a command, a port and the place in its answer, behind one another: the value)."""

import json

import commands
import home

DATA = home.PLACE.data("delivered/counters.json")
KNOWN = {known["command"]: known for known in DATA["commands"]}


def told(command):
    known = KNOWN[command.removesuffix(" | json")]
    home.PLACE.log("told", command)
    refused = (home.PLACE.fault("uncounted") or "").splitlines()
    if known["command"] in refused or not command.endswith(" | json"):
        raise commands.invalid(command)
    laid = json.loads(home.PLACE.fault("counters") or "{}")
    with home.state() as state:
        ports = [name.split(" ", 1)[1] for name in state["running"] if name.startswith("interface Ethernet")]
    answer = {}
    for port in ports:
        found = filled(known["port"], laid, f"{known['command']} {port}")
        if found != {}:
            nest(answer, [*known["members"], port])[port] = found
    nest(answer, [*known["members"], ""])
    return json.dumps(answer, indent=4)


def filled(form, laid, place):
    """A port's part of an answer; `each` is a form of all these names. A form that is only there `on event` is left out until a test lays something there."""
    if not isinstance(form, dict):
        return laid.get(place, form)
    if "each" in form:
        form = {name: form["form"] for name in form["each"]}
    out = {}
    for name, below in form.items():
        is_late = isinstance(below, dict) and below.get("on event")
        below = {key: value for key, value in below.items() if key != "on event"} if isinstance(below, dict) else below
        if not is_late or any(one.startswith(f"{place} {name} ") for one in laid):
            out[name] = filled(below, laid, f"{place} {name}")
    return {} if all(value == {} for value in out.values()) else out


def nest(tree, path):
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    return tree
