"""What fakes of APIs of switches have in common: HTTPS beside the switch, with users and passwords, faults and what is refused as data.

FOLDER ENTRY... are the arguments of each: in FOLDER are `cert.pem`, `key.pem`, `users.json`, the port in `port` (written where there is none), faults as
files in `faults`, and logs; ENTRY is the command line that enters the switch."""

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER, ENTRY = sys.argv[1], sys.argv[2:]


def fault(name):
    try:
        with open(f"{FOLDER}/faults/{name}") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def log(name, line):
    with open(f"{FOLDER}/{name}", "a") as file:
        file.write(line + "\n")


class Handler(BaseHTTPRequestHandler):
    """`refusals` has, by what is wrong, a status and a body."""

    protocol_version = "HTTP/1.1"
    refusals = {}

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="switch"')
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, name):
        known = self.refusals[name]
        self.reply(known["status"], known["body"].encode(), known.get("kind", "text/html"))
        self.close_connection = True

    def is_known(self):
        kind, _, credentials = self.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(credentials or "").decode("utf-8", "replace").partition(":")
        with open(f"{FOLDER}/users.json") as users:
            return kind == "Basic" and json.load(users).get(user) == password


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_):
        pass


def serve(handler):
    try:
        with open(f"{FOLDER}/port") as file:
            port = int(file.read())
    except FileNotFoundError:
        port = 0
    server = Server(("127.0.0.1", port), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/cert.pem", f"{FOLDER}/key.pem")
    # The handshake is done by the thread of the connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(f"{FOLDER}/port", "w") as file:
        file.write(str(server.server_port))
    print("ready", flush=True)
    server.serve_forever()
