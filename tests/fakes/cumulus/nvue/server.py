"""A fake REST API of NVUE, called one by name: configurations, what `nv show` tells, and revisions with a timer that takes back what nobody
confirms, over HTTPS. It runs beside the switch and enters it for each answer (`lib/rest.py`); its arguments are those of `switch/https.py`. Places:
CumulusNetworks/docs, content/cumulus-linux-512/.../NVUE-API.md."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../switch")
import https

with open(f"{HERE}/../refusals/rest.json") as file:
    REFUSALS = json.load(file)


class Handler(https.Handler):
    refusals = REFUSALS["http"]

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.is_known():
            return self.refuse("unauthorized")
        if https.fault("default-password") is not None:
            return self.refuse("default-password")
        status = https.fault("status")
        if status is not None:
            return self.reply(int(status), b"<html><body>Internal Server Error</body></html>", "text/html")
        if not self.path.startswith("/nvue_v1/") or https.fault("elsewhere") is not None:
            return self.refuse("elsewhere")
        if self.command == "GET":
            https.log("asked", self.path)
        else:
            https.log("changes", f"{self.command} {self.path} {body.decode()}")
            if https.fault("may-only-look") is not None:
                return self.refuse("may-only-look")
        # Whatever has the first word in its path is answered with the rest.
        place, _, says = (https.fault("says") or "").partition(" ")
        if says and self.command == "GET" and place in self.path:
            return self.reply(200, says.encode())
        words = ["env", "PYTHONPATH=/opt/cumulus-fake/lib", "/usr/bin/python3", "-m", "rest", self.command, self.path.removeprefix("/nvue_v1")]
        ran = subprocess.run([*https.ENTRY, *words], input=body, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        status, _, document = ran.stdout.partition(b"\n")
        if ran.returncode or not document:
            sys.stderr.write(ran.stderr.decode())
            return self.refuse("away")
        # The answer to what was just carried out gets lost, once for each such fault.
        lost = https.fault("lose")
        if lost is not None and lost in body.decode():
            os.remove(f"{https.FOLDER}/faults/lose")
            self.close_connection = True
            return self.connection.close()
        if https.fault("cut") is not None:
            self.close_connection = True
            return self.connection.close()
        self.reply(int(status), document)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer


https.serve(Handler)
