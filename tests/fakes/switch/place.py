"""What fakes of switches have in common: where each has its things, and the faults that a test lays in a folder of it."""

import contextlib
import fcntl
import json
import os
import time


@contextlib.contextmanager
def kept(path, fresh):
    """What a file keeps, under a lock, written back at the end; as it is at first where there is no file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(path) as file:
                known = json.load(file)
        except FileNotFoundError:
            known = fresh
        yield known
        with open(path + ".new", "w") as file:
            json.dump(known, file)
        os.replace(path + ".new", path)


class Place:
    def __init__(self, name):
        self.home = f"/opt/{name}-fake"
        self.faults = f"/etc/{name}-fake/faults"
        self.logs = f"/var/log/{name}-fake"
        self.marks = f"/run/{name}-fake"

    def data(self, name):
        with open(f"{self.home}/{name}") as file:
            return json.load(file)

    def model(self):
        """The switch as it is delivered: of the file `model`, or the one that all tests have that name none."""
        try:
            with open(f"{self.home}/model") as file:
                name = file.read().strip()
        except FileNotFoundError:
            name = ""
        return self.data(f"delivered/{name or 'model'}.json")

    def fault(self, name):
        """The text of a fault, or None where nobody wants it."""
        try:
            with open(f"{self.faults}/{name}") as file:
                return file.read().strip()
        except FileNotFoundError:
            return None

    def after(self, name, steps):
        """True where a fault wants to be after so many steps."""
        text = self.fault(name)
        return text is not None and int(text or 0) == steps

    def log(self, name, line):
        os.makedirs(self.logs, exist_ok=True)
        with open(f"{self.logs}/{name}", "a") as file:
            file.write(line + "\n")

    def mark(self, name):
        os.makedirs(self.marks, exist_ok=True)
        open(f"{self.marks}/{name}", "w").close()

    def wait_while(self, fault_name):
        """Hangs until the test takes the fault away."""
        while self.fault(fault_name) is not None:
            time.sleep(0.02)
