"""Which operations on which fields the fake's updater takes: the rules are data (`refusals/allowed.json`, with its source)."""

import re

import home
import jsonpointer


class Illegal(ValueError):
    pass


def asic(rules, hwsku):
    """The chip by the name of the hardware SKU: exact for Mellanox, contained for Broadcom."""
    kind = home.version().get("asic_type")
    name = hwsku.lower()
    if kind in rules["asic_types"]:
        return kind
    if kind in ("mellanox", "vs"):
        for chip, skus in rules["mellanox_asics"].items():
            if name in (sku.lower() for sku in skus):
                return chip
    if kind in ("broadcom", "vs"):
        for chip, skus in rules["broadcom_asics"].items():
            if any(sku.lower() in name for sku in skus):
                return chip
    return None


def branch():
    """A part of eight digits in the build version; community builds have none, and are then not asked for one."""
    parts = [part for part in home.version().get("build_version", "").split(".") if re.fullmatch(r"\d{8}", part)]
    return parts[-1] if parts else None


def touched(parts, op, forget_ports):
    words = [word for word in parts[1:] if not (forget_ports and re.search(r"\d", word))]
    field = "/".join(words).lower()
    if isinstance(op.get("value"), dict):
        return [f"{field}/{key}" if field else key for key in op["value"]]
    return [field]


def by_scenario(rules, table, parts, op, config):
    chip = asic(rules, config.get("DEVICE_METADATA", {}).get("localhost", {}).get("hwsku", ""))
    if chip is None:
        return False
    exact = table["match"] == "exact"
    for field in touched(parts, op, forget_ports=exact):
        word = field if exact else field.split("/")[-1]
        found = next((s for s in table["scenarios"] if word in s["fields"]), None)
        since = found and found["platforms"].get(chip)
        if not since or op["op"] not in found["operations"]:
            return False
        if branch() is not None and branch() < since:
            return False
    return True


def port_values(op, parts):
    """Port, field and value of all that an operation on PORT sets."""
    value = op.get("value")
    if len(parts) == 3:
        return [(parts[1], parts[2], value)]
    rows = {parts[1]: value} if len(parts) == 2 else value
    return [(port, field, text) for port, row in (rows or {}).items() for field, text in row.items()]


def by_port(op, parts, state):
    if op["op"] == "remove":
        return True
    for port, field, value in port_values(op, parts):
        can = state.hgetall(f"PORT_TABLE|{port}")
        if field == "fec" and value.strip() not in (can.get("supported_fecs") or "rs,fc,none,auto").split(","):
            return False
        speeds = [int(word) for word in (can.get("supported_speeds") or "").split(",") if word]
        if field == "speed" and (not str(value).isdigit() or (speeds and int(value) not in speeds)):
            return False
    return True


def check(patch, config, state):
    """Raises on the first operation of a patch, as the difference of the two configurations has it, that is not allowed."""
    rules = home.data("refusals/allowed.json")
    for op in patch:
        if op["op"] == "remove" and op["path"] in rules["never_removed"]:
            raise Illegal(f"Given patch operation is invalid. Operation: remove is illegal on field: {op['path']}")
    for op in patch:
        parts = jsonpointer.JsonPointer(op["path"]).parts
        table = rules["tables"].get(parts[0])
        if table is None:
            continue
        if table["by"] == "ports":
            fine = by_port(op, parts, state)
        elif table.get("whole_rows") and len(parts) <= 2:
            fine = op["op"] in ("add", "remove", "replace")
        else:
            fine = by_scenario(rules, table, parts, op, config)
        if not fine:
            raise Illegal(f"Modification of {parts[0]} table is illegal- validating function {table['function']} returned False")


