"""What railwright does with the text of EOS's configuration on the switch itself, so that users and keys in it never leave it. For the
Python 2 of older releases too.

read WORD      a configuration on standard input: prints what is judged, between a line with the word and `end`, which is not there where
               the configuration was cut off
sessions       `show configuration sessions detail | json` on standard input: prints whose waits to be committed
diffs WORDS    `show session-config named NAME diffs` on standard input: prints what of it begins with none of these words
up PORTS...    `show interfaces description | json` on standard input: prints those of these ports that have a link
back NOW KEPT KEYS PORTS   the commands that make KEPT out of NOW, as far as it is of these ports; DSCPs that KEPT does not map are mapped no more
others PORTS   a configuration on standard input: prints all but these ports and the DSCP map of the whole switch
"""
import json
import re
import sys

OWN = (
    "mtu", "l2 mtu", "l2 mru", "shutdown", "no shutdown", "no switchport", "qos trust", "no qos trust", "qos map", "service-profile",
    "service-policy", "priority-flow-control", "no priority-flow-control", "tx-queue", "uc-tx-queue", "ethernet",
)
OF_QUEUE = ("random-detect", "bandwidth", "no priority", "priority")
OF_ALL = ("qos map", "priority-flow-control")
MAP = "qos map dscp"


def begins(line, words):
    return any(line == word or line.startswith(word + " ") for word in words)


def lines(text):
    """Every command with the commands that lead to it."""
    above = []
    for line in text.splitlines():
        command = line.strip()
        if command and not command.startswith("!"):
            indent = len(line.rstrip()) - len(command)
            above = [one for one in above if one[0] < indent]
            yield tuple(one[1] for one in above), command
            above.append((indent, command))


def is_judged(path, command):
    if not path:
        return begins(command, OF_ALL) or begins(command, ("qos profile", "interface defaults")) or command.startswith("interface Ethernet")
    if path[0].startswith("interface Ethernet") or path[0] == "interface defaults" or path[0].startswith("qos profile "):
        return begins(command, OWN) if len(path) == 1 else begins(path[1], OWN) and (begins(command, OF_QUEUE) or begins(command, OWN))
    return False


def judged(text):
    return [(path, command) for path, command in lines(text) if len(path) < 3 and is_judged(path, command)]


def read(word):
    text = sys.stdin.read()
    commands, is_whole = judged(text), text.rstrip().splitlines()[-1:] == ["end"]
    refused = [line for line in text.splitlines() if line.lstrip().startswith("%")]
    if not commands and not is_whole and (refused or not text.strip()):
        sys.exit(65)
    print("! railwright " + word)
    for path, command in commands:
        print("   " * len(path) + command)
    if is_whole:
        print("end")


def sessions():
    said = json.load(sys.stdin)
    for name, session in sorted(said.get("sessions", {}).items()):
        if "pending" in str(session.get("state", "")):
            print(("ours " if name.startswith("railwright-") else "theirs ") + name)
    # From 4.32 on a session whose timer runs is told apart (napalm-automation/napalm#2166).
    if said.get("commitTimerSessionName"):
        print("theirs " + said["commitTimerSessionName"])


def diffs(words):
    words = json.loads(words)
    for line in sys.stdin.read().splitlines():
        command = line[1:].strip()
        if line[:1] in "+-" and line[:3] not in ("+++", "---") and command and not command.startswith("!"):
            print(("ours: " if begins(command, words) else "not ours: ") + command)


def up(ports):
    said = json.load(sys.stdin)["interfaceDescriptions"]
    for port in ports:
        if said.get(port, {}).get("lineProtocolStatus") == "up":
            print(port)


def of(command, keys):
    """The words that name a setting, and what takes it away; one of many (`priority 3 no-drop`) has its number."""
    for words, opposite, without in keys:
        if words == "priority-flow-control priority" and begins(command, (words,)):
            return " ".join(command.split()[:3]), "no " + command
        if begins(command, (words,)) or command == opposite:
            return words, without
    return None


def settings(text, keys, ports):
    """What of these ports we may come to change."""
    out, ours = {}, ["interface " + port for port in ports.split()]
    for path, command in judged(text):
        if path and path[0] in ours and of(command, keys):
            out.setdefault(path, {})[of(command, keys)[0]] = command
    return out


def mapped(text):
    """DSCPs that the map of the whole switch names: `qos map dscp 8-10 26 to traffic-class 4`."""
    out = set()
    for path, command in lines(text):
        if not path and begins(command, (MAP,)):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", command.split(" to ")[0]):
                out.update(range(int(first), min(int(last or first), 63) + 1))
    return out


def back(now, kept, keys, ports):
    """Of the map our change only adds what nobody said: what was said before is left as it is now."""
    keys = json.loads(keys)
    with open(now) as one:
        with open(kept) as other:
            texts = one.read(), other.read()
    here, there = [settings(text, keys, ports) for text in texts]
    for path in sorted(set(here) | set(there)):
        one, other = here.get(path, {}), there.get(path, {})
        gone = [of(one[key], keys)[1] for key in sorted(one, reverse=True) if key not in other]
        told = gone + [other[key] for key in sorted(other) if one.get(key) != other[key]]
        if told:
            print("\n".join(list(path) + told + ["exit"] * len(path)))
    for dscp in sorted(mapped(texts[0]) - mapped(texts[1])):
        print("no %s %d" % (MAP, dscp))


def others(ports):
    """In order by their words: what is put back comes to stand elsewhere."""
    ours = ["interface " + port for port in ports.split()]
    told = [list(path) + [command] for path, command in lines(sys.stdin.read())]
    print(json.dumps(sorted(one for one in told if one[0] not in ours and not begins(one[0], (MAP,)))))


if sys.argv[1] == "read":
    read(sys.argv[2])
elif sys.argv[1] == "sessions":
    sessions()
elif sys.argv[1] == "diffs":
    diffs(sys.argv[2])
elif sys.argv[1] == "up":
    up(sys.argv[2:])
elif sys.argv[1] == "others":
    others(sys.argv[2])
else:
    back(*sys.argv[2:])
