"""Prints the counters of ports as lines; names of ports are the arguments. Only shows: it sets nothing. For the Python 2 of older releases too.

What a command does not tell of a port is `untold`, and never zero."""
import json
import os
import subprocess
import sys

PFC = "show priority-flow-control counters detail"
WATCHDOG = "show priority-flow-control counters watchdog"
MARKS = "show qos interfaces ecn counters queue"
QUEUES = "show interfaces counters queue detail"
VOQS = "show interfaces counters queue drops"
DISCARDS = "show interfaces counters discards"

SAID = {}


def asked(command):
    if command not in SAID:
        with open(os.devnull, "r+b") as nothing:
            child = subprocess.Popen(["FastCli", "-p", "15", "-c", command + " | json"], stdin=nothing, stdout=subprocess.PIPE, stderr=nothing)
            out = child.communicate()[0]
        try:
            SAID[command] = json.loads(out.decode("utf-8", "replace"))
        except (ValueError, RuntimeError):
            SAID[command] = None
    return SAID[command]


def at(tree, *path):
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def rows(tree, *path):
    found = at(tree, *path)
    return found.items() if isinstance(found, dict) else []


def is_digits(text):
    return 0 < len(text) < 21 and all(one in "0123456789" for one in text)


def word(value):
    """Numbers of some counters are texts."""
    return str(value) if isinstance(value, type(u"")) and is_digits(value) else json.dumps(value)[:40]


def classes(key):
    """`TC3`, or several that share a queue and its counter: `TC0-2`."""
    first, _, last = key[2:].partition("-")
    is_class = key[:2] == "TC" and is_digits(first) and is_digits(last or first)
    return [n for n in range(8) if int(first) <= n <= int(last or first)] if is_class else []


def summed(counts):
    """What several counters of a class come to; one that is no number leaves it open."""
    for n, all_of in sorted((n, all_of) for n, all_of in counts.items() if all_of):
        odd = [value for value in all_of if not is_digits(word(value))]
        yield "dropped/%d %s" % (n, word(odd[0] if odd else sum(int(value) for value in all_of)))


def pauses(said, port):
    for n in range(8):
        row = at(said, "interfaces", port, "priorities", str(n))
        for name in ("rxFrames", "txFrames"):
            if isinstance(row, dict) and name in row:
                yield "%s/%d %s" % (name, n, word(row[name]))


def storms(said, port):
    """A port is not there until its first event, and neither is a queue."""
    if isinstance(at(said, "interfaces"), dict) and not at(said, "errors"):
        queues = at(said["interfaces"].get(port, {"txQueues": {}}), "txQueues")
        for n in range(8):
            row = queues.get(str(n), {"stuckCount": 0}) if isinstance(queues, dict) else None
            yield "stuckCount/%d %s" % (n, word(at(row, "stuckCount")))


def marks(said, port):
    """A queue of which nobody wants marks counted has a dash."""
    for n in range(8):
        value = at(said, "intfQueueCounters", port, "queueCounters", str(n))
        if value is not None and value != "-":
            yield "marked/%d %s" % (n, word(value))


def dropped(said, port):
    counts = {}
    for kind in ("ucastQueues", "mcastQueues"):
        for key, row in rows(said, "egressQueueCounters", "interfaces", port, kind, "trafficClasses"):
            for n in classes(key):
                counts.setdefault(n, []).extend(at(one, "droppedPackets") for _, one in rows(row, "dropPrecedences"))
    return summed(counts)


def dropped_of_voqs(said, port):
    counts = {}
    for key, row in rows(said, "interfaces", port, "trafficClasses"):
        for n in classes(key):
            both = ("ingressVoqCounters", "egressQueueCounters")
            counts.setdefault(n, []).extend(at(row, one, "countersSum", "droppedPackets") for one in both)
    return summed(counts)


def discards(said, port):
    row = at(said, "interfaces", port)
    if isinstance(row, dict) and "inDiscards" in row:
        yield "inDiscards " + word(row["inDiscards"])


# What is looked for, and the commands that may tell it. Marks are judged by nobody: where they are not counted, they are not told.
ALL = (
    ("rxFrames", ((PFC, pauses),)),
    ("stuckCount", ((WATCHDOG, storms),)),
    (None, ((MARKS, marks),)),
    ("dropped", ((QUEUES, dropped), (VOQS, dropped_of_voqs))),
    ("inDiscards", ((DISCARDS, discards),)),
)


def port(name):
    found, untold = [], []
    for counter, ways in ALL:
        told = []
        for command, lines in ways:
            told = told or list(lines(asked(command), name))
        found += told
        if counter and not told:
            untold.append("untold/%s `%s` tells nothing of the port" % (counter, ways[0][0]))
    return ["port " + name] + (found + untold if found else ["unread EOS tells no counters of the port"])


for one in sys.argv[1:]:
    print("\n".join(port(one)))
