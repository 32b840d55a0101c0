"""Prints the counters of ports as lines; names of ports are the arguments. Only shows: it sets nothing."""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

KEPT = {"rx-pause-frames", "tx-pause-frames", "rx-buffer-discards", "tx-uc-buffer-discards", "wred-discards", "ecn-marked-frames", "status", "deadlock-count"}


def asked(*words):
    ran = subprocess.run(["nv", "show", "interface", *words, "-o", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        said = json.loads(ran.stdout)
    except ValueError:
        return None
    return said if ran.returncode == 0 and isinstance(said, dict) else None


def lines(tree):
    """Tables of rows by their number, below each other or not."""
    for key, row in tree.items():
        if not isinstance(row, dict):
            continue
        if key.isdigit():
            for name in KEPT & set(row):
                yield f"{name}/{key} {row[name]}".replace("\n", " ")
        else:
            yield from lines(row)


def port(name):
    counters = asked(name, "counters", "qos")
    if counters is None:
        counters = asked(name, "qos", "counters")
    if counters is None:
        return [f"port {name}", "unread nv tells no counters of the port"]
    watchdog = asked(name, "qos", "pfc-watchdog", "status") or {}
    return [f"port {name}", *sorted(lines(counters)), *sorted(lines(watchdog))]


with ThreadPoolExecutor(8) as several:
    for told in several.map(port, sys.argv[1:]):
        print("\n".join(told))
