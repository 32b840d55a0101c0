"""What NVUE refuses, by `refusals/*.json`: places with what stands there, and rules between places."""

import fnmatch
import re

import home

PLACES = home.data("refusals/places.json")["places"]
RULES = home.data("refusals/rules.json")


def leaves(tree, path=()):
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, path + (key,))
    else:
        yield path, tree


def rule_of(path):
    for place in PLACES:
        words = place["path"].split("/")
        if len(words) == len(path) and all(fnmatch.fnmatchcase(word, pattern) for word, pattern in zip(path, words)):
            return place
    return None


def inside(path):
    """True for a place above ones that there are, which may be empty."""
    def begins(words):
        return len(words) > len(path) and all(fnmatch.fnmatchcase(word, pattern) for word, pattern in zip(path, words))
    return any(begins(place["path"].split("/")) for place in PLACES)


def wrong(path, value):
    """Why a leaf is refused, or None. Trees other than these two are not looked into."""
    if path[0] not in ("interface", "qos") or (path[0] == "interface" and len(path) > 2 and path[2] not in ("link", "qos")):
        return None
    place = rule_of(path)
    if place is None:
        if value == {} and inside(path):
            return None
        return f"'{path[-1]}' is not one of the places below {'.'.join(path[:-1])}"
    if "range" in place:
        low, high = place["range"]
        if not isinstance(value, int):
            return f"{value!r} is not of type 'integer'"
        return None if low <= value <= high else f"{value} is not in the range {low}..{high}"
    if "words" in place:
        return None if value in place["words"] else f"{value!r} is not one of {place['words']}"
    if "entry" in place:
        low, high = place["entry"]
        key = path[-1]
        return None if value == {} and re.fullmatch(r"\d+", key) and low <= int(key) <= high else f"'{key}' is not in the range {low}..{high}"
    return None


def profile(tree, port, family):
    return tree.get("interface", {}).get(port, {}).get("qos", {}).get(family, {}).get("profile")


def pauses(tree, port):
    qos = tree.get("qos", {})
    roce = qos.get("roce")
    if profile(tree, port, "pfc") is None and roce is not None and roce.get("enable", "on") == "on" and roce.get("state", "enabled") == "enabled":
        return roce.get("mode", "lossless").startswith("lossless")
    name = profile(tree, port, "pfc") or "default-global"
    return bool(qos.get("pfc", {}).get(name, {}).get("switch-priority"))


def between(tree):
    qos = tree.get("qos", {})
    percents = [pool.get("memory-percent", 0) for pool in qos.get("traffic-pool", {}).values()]
    if sum(percents) > 100:
        yield RULES["pools"]["text"].format(sum=sum(percents))
    if len([pool for pool in qos.get("traffic-pool", {}) if pool.endswith("lossless")]) > 1:
        yield RULES["one-lossless-pool"]["text"]
    for name, scheduler in qos.get("egress-scheduler", {}).items():
        total = sum(one.get("bw-percent", 0) for one in scheduler.get("traffic-class", {}).values())
        if total > 100:
            yield RULES["shares"]["text"].format(name=name, sum=total)
    for name, marking in qos.get("congestion-control", {}).items():
        for number, one in marking.get("traffic-class", {}).items():
            if one.get("min-threshold", 0) > one.get("max-threshold", 2**32):
                yield RULES["thresholds"]["text"].format(name=name, number=number)
    for port, interface in tree.get("interface", {}).items():
        of_port = interface.get("qos", {})
        for family in ("mapping", "pfc", "congestion-control", "egress-scheduler", "link-pause"):
            name = profile(tree, port, family)
            if name is not None and name != "default-global" and name not in qos.get(family, {}):
                yield RULES["bound"]["text"].format(port=port, family=family, name=name)
        if profile(tree, port, "link-pause") and profile(tree, port, "pfc"):
            yield RULES["pause"]["text"].format(port=port)
        watchdog = of_port.get("pfc-watchdog")
        if watchdog is not None and watchdog.get("state", "enabled").startswith("enable") and not pauses(tree, port):
            yield RULES["watchdog"]["text"].format(port=port)


def complaints(tree):
    found = [f"Config invalid at {'.'.join(path)}: {why}" for path, value in leaves(tree) if path and (why := wrong(path, value))]
    refused = home.fault("refuse")
    return found + list(between(tree)) + ([refused] if refused else [])
