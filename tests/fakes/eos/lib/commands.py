"""Commands of a configuration, by `refusals/commands.json`."""

import re

import home

DATA = home.PLACE.data("refusals/commands.json")
MODEL = home.PLACE.model()
BETWEEN = DATA["between"]


class Refused(Exception):
    pass


def invalid(command):
    return Refused(f"% Invalid input (at token 0: '{command.split(' ')[0]}')")


def filled(names, numbers):
    return [name.format(*numbers, *[""] * 3) for name in names]


def setting(where, command):
    """What a command sets (its name and itself), or takes away (its name and nothing)."""
    for one in (one for one in DATA["commands"] if one["in"] == where):
        found = re.fullmatch(one["set"], command)
        if found:
            for value, (low, high) in zip((group for group in found.groups() if group), one.get("ranges", [])):
                if not low <= float(value) <= high:
                    raise Refused(f"% Invalid input (at token {command.split(' ').index(value)}: '{value}')")
            return filled([one["name"]], found.groups())[0], command
        if command in one.get("shown", []):
            return one["name"], command
        for form in one["without"]:
            found = re.fullmatch(re.escape(form).replace(r"\{0\}", r"(\d+)"), command)
            if found:
                return filled([one["name"]], found.groups())[0], None
    raise invalid(command)


def entered(path, command, tree):
    """The kind of section that a command enters, or None; and a warning."""
    if path and path[-1][0] == "interface":
        found = re.fullmatch(r"(uc-tx-queue|tx-queue) ([0-7])", command)
        if found and found[1] != MODEL["queue"]:
            raise invalid(command)
        return ("queue", None) if found else (None, None)
    if command.startswith("interface "):
        if not re.fullmatch(r"interface (Ethernet\d+(/\d+)*|Management\d+)", command):
            raise Refused(f"% Invalid input (at token 1: '{command.split(' ', 1)[1]}')")
        return "interface", None if command in tree else BETWEEN["port"]["text"]
    return None, None


def apply(tree, path, command):
    """A command in a section of a tree."""
    where = path[-1][0] if path else ""
    for _, section in path:
        tree = tree.setdefault(section, {})
    name, wanted = setting(where, command)
    if name == "random-detect ecn" and wanted:
        low, high = re.findall(r"threshold (\d+)", wanted)
        if int(low) > int(high):
            raise Refused(BETWEEN["thresholds"]["text"])
    for there in [there for there in tree if said(where, there) == name]:
        del tree[there]
    if wanted:
        tree[wanted] = {}


def said(where, command):
    try:
        return setting(where, command)[0]
    except Refused:
        return None
