"""Where the fake of a SONiC switch has its things, and the faults that a test lays in a folder of it."""

import errno
import json
import os
import time

HOME = "/opt/sonic-fake"
FAULTS = "/etc/sonic-fake/faults"
LOGS = "/var/log/sonic-fake"
MARKS = "/run/sonic-fake"
SAVED = "/etc/sonic/config_db.json"
CHECKPOINTS = "/etc/sonic/checkpoints"


def data(name):
    with open(f"{HOME}/{name}") as file:
        return json.load(file)


def fault(name):
    """The text of a fault, or None where nobody wants it."""
    try:
        with open(f"{FAULTS}/{name}") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def number(name, default):
    text = fault(name)
    return int(text) if text else default


def log(name, line):
    os.makedirs(LOGS, exist_ok=True)
    with open(f"{LOGS}/{name}", "a") as file:
        file.write(line + "\n")


def lines(name):
    try:
        with open(f"{LOGS}/{name}") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def mark(name):
    os.makedirs(MARKS, exist_ok=True)
    open(f"{MARKS}/{name}", "w").close()


def wait_while(fault_name):
    """Hangs until the test takes the fault away."""
    while fault(fault_name) is not None:
        time.sleep(0.02)


def version():
    """/etc/sonic/sonic_version.yml: lines `word: value`."""
    words = {}
    with open("/etc/sonic/sonic_version.yml") as file:
        for line in file:
            word, colon, value = line.partition(":")
            if colon:
                words[word.strip()] = value.strip().strip("'\"")
    return words


def full_flash():
    """Raises where a test wants the flash to be full."""
    if fault("full-flash") is not None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
