"""Whether a configuration keeps to what SONiC's YANG models ask, as far as railwright goes. The rules are data
(`refusals/models.json`, with their source): libyang and the models themselves are not in the fake's root."""

import re

import home


class Invalid(ValueError):
    pass


def say(rules, form, **words):
    return rules["words"][form].format(**words)


def one_value(rules, config, rule, value, where):
    """One value against one rule."""
    if "range" in rule:
        low, high = rule["range"]
        if not re.fullmatch(r"-?\d+", value) or not low <= int(value) <= high:
            raise Invalid(say(rules, "constraint", value=value, constraint=f"{low}..{high}", path=where))
    if "pattern" in rule and not re.fullmatch(rule["pattern"], value):
        raise Invalid(say(rules, "constraint", value=value, constraint=rule["pattern"], path=where))
    if "one_of" in rule and value not in rule["one_of"]:
        raise Invalid(say(rules, "element", value=value, element=where.rsplit("/", 1)[-1], path=where))
    if "refers_to" in rule and value not in rule.get("or", []):
        # up to schema 3.0.1 a reference is written [TABLE|name]
        name = re.sub(r"^\[[A-Z_]+\|(.*)\]$", r"\1", value)
        for word in name.split(","):
            if word not in config.get(rule["refers_to"], {}):
                raise Invalid(say(rules, "reference", target=rule["refers_to"], value=word, path=where))


def key(rules, config, model, table, name):
    parts = name.split("|")
    shape = model["key"]
    if name in model.get("other_keys", []):
        return
    if len(parts) != len(shape):
        raise Invalid(say(rules, "key", table=table, key=name))
    for part, rule in zip(parts, shape):
        one_value(rules, config, rule, part, f"/{table}/{name}")


def row(rules, config, model, table, name, fields):
    for field, value in fields.items():
        where = f"/{table}/{name}/{field}"
        rule = model["fields"].get(field)
        if rule is None and "any_field" in model:
            one_value(rules, config, model["any_field"], field, where)
            rule = model["any_value"]
        if rule is None:
            raise Invalid(say(rules, "unknown", field=field, table=table, path=where))
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                raise Invalid(say(rules, "element", value=text, element=field, path=where))
            one_value(rules, config, rule, text, where)
    for field in model.get("mandatory", []):
        if field not in fields:
            raise Invalid(say(rules, "mandatory", field=field, path=f"/{table}/{name}"))


def order(rules, config):
    """Pairs of fields of which one must not be below the other."""
    for rule in rules["at_least"]:
        for name, fields in config.get(rule["table"], {}).items():
            other = fields if "key" not in rule else config[rule["table"]].get(rule["key"], {})
            small, big = other.get(rule["than"]), fields.get(rule["field"])
            if small is not None and big is not None and int(big) < int(small):
                path = f"/{rule['table']}/{name}/{rule['field']}"
                raise Invalid(say(rules, "must", message=rule["message"], path=path))


def lanes(config):
    seen = {}
    for port, fields in config.get("PORT", {}).items():
        for lane in (word.strip() for word in fields.get("lanes", "").split(",")):
            if not lane.isdigit():
                raise Invalid(f"PORT '{port}' has an invalid lane '{lane}'")
            if lane in seen:
                raise Invalid(f"'{lane}' lane is used multiple times in PORT: {set([port, seen[lane]])}")
            seen[lane] = port


def check(config):
    """Raises what is wrong first."""
    rules = home.data("refusals/models.json")
    for table, rows in config.items():
        model = rules["tables"].get(table)
        if model is None:
            continue
        for name, fields in rows.items():
            key(rules, config, model, table, name)
            row(rules, config, model, table, name, fields)
    order(rules, config)
    lanes(config)


def without_model(tables):
    rules = home.data("refusals/models.json")
    return [table for table in tables if table not in rules["tables"] and table not in rules["other_tables"]]
