"""Writes out a switch as it is delivered from `delivered/<model>.json`, where what all ports have is written once."""

import json
import os

import home


def filled(value, words):
    if isinstance(value, dict):
        return {filled(key, words): filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    for word, text in words.items():
        value = value.replace("{" + word + "}", text)
    return value


def config(model):
    tables = {table: dict(rows) for table, rows in model["tables"].items()}
    ports = model["ports"]
    for n in range(ports["count"]):
        lanes = range(n * ports["lanes"] + ports["first_lane"], (n + 1) * ports["lanes"] + ports["first_lane"])
        words = {"port": f"Ethernet{n * ports['step']}", "n": str(n), "number": str(n + 1), "lanes": ",".join(map(str, lanes))}
        for table, rows in filled(model["each_port"], words).items():
            for key, fields in rows.items():
                tables.setdefault(table, {}).setdefault(key, {}).update(fields)
    return tables


def write():
    with open(f"{home.HOME}/model") as file:
        model = home.data(f"delivered/{file.read().strip()}.json")
    os.makedirs("/etc/sonic", exist_ok=True)
    with open("/etc/sonic/sonic_version.yml", "w") as file:
        file.write("---\n" + "".join(f"{word}: {value}\n" for word, value in model["version"].items()))
    with open(home.SAVED, "w") as file:
        json.dump(config(model), file, indent=4, sort_keys=True)
        file.write("\n")
