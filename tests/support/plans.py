"""Plans of sweeps as TOML."""

import json


def to_toml(plan):
    lines = []
    for name, tables in plan.items():
        for table in tables if isinstance(tables, list) else [tables]:
            lines.append(f"[[{name}]]" if isinstance(tables, list) else f"[{name}]")
            lines += [f"{key} = {inline(value)}" for key, value in table.items()]
    return "\n".join(lines)


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
