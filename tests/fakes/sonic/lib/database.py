"""The databases of the fake of a SONiC switch: a real Redis on a unix socket, numbers and separators as in
sonic-buildimage dockers/docker-database/database_config.json.j2."""

import redis

SOCKET = "/run/redis/redis.sock"
NUMBERS = {"APPL_DB": 0, "ASIC_DB": 1, "COUNTERS_DB": 2, "CONFIG_DB": 4, "FLEX_COUNTER_DB": 5, "STATE_DB": 6}


def connect(name):
    return redis.Redis(unix_socket_path=SOCKET, db=NUMBERS[name], decode_responses=True)


def decode(row):
    """A hash as it is stored becomes fields: `@` marks a list, `NULL` an entry without fields."""
    fields = {}
    for field, value in row.items():
        if field.endswith("@"):
            fields[field[:-1]] = value.split(",")
        elif field != "NULL":
            fields[field] = value
    return fields


def encode(fields):
    row = {}
    for field, value in fields.items():
        if isinstance(value, list):
            row[field + "@"] = ",".join(map(str, value))
        else:
            row[field] = str(value)
    return row or {"NULL": "NULL"}


class Config:
    """CONFIG_DB: table -> key -> fields."""

    def __init__(self):
        self.redis = connect("CONFIG_DB")

    def read(self):
        keys = sorted(key for key in self.redis.keys("*|*"))
        pipe = self.redis.pipeline(transaction=False)
        for key in keys:
            pipe.hgetall(key)
        config = {}
        for key, row in zip(keys, pipe.execute()):
            table, name = key.split("|", 1)
            if row:
                config.setdefault(table, {})[name] = decode(row)
        return config

    def row(self, table, key):
        row = self.redis.hgetall(f"{table}|{key}")
        return decode(row) if row else None

    def set(self, table, key, fields):
        """The whole row, as set_entry of swsscommon does; None removes it."""
        name = f"{table}|{key}"
        pipe = self.redis.pipeline()
        if fields is None:
            pipe.delete(name)
        else:
            pipe.hset(name, mapping=encode(fields))
            gone = set(self.redis.hkeys(name)) - set(encode(fields))
            if gone:
                pipe.hdel(name, *gone)
        pipe.execute()

    def merge(self, config):
        """Adds and replaces fields, takes nothing away: mod_config of swsscommon."""
        pipe = self.redis.pipeline(transaction=False)
        for table, rows in config.items():
            for key, fields in rows.items():
                if fields is None:
                    pipe.delete(f"{table}|{key}")
                    continue
                row = encode(fields)
                pipe.hset(f"{table}|{key}", mapping=row)
                if row != {"NULL": "NULL"}:
                    pipe.hdel(f"{table}|{key}", "NULL")
        pipe.execute()

    def flush(self):
        self.redis.flushdb()
