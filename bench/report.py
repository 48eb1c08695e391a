"""What was measured, as text and as the generated parts of docs/performance.md.

The one idea: a section is data (tables of cells and targets), and both forms are made from it; nobody copies a number. A cell is a text,
a number or a spread {median, min, max}.
"""
import re


def table(title, columns, rows, note=""):
    return {"title": title, "columns": columns, "rows": rows, "note": note}


def target(what, limit, value, met, unit=""):
    """`value`: a cell, or None when a peer is missing."""
    return {"what": what, "limit": limit, "measured": value, "unit": unit, "met": met}


def at_most(what, limit, value, unit=""):
    middle = value["median"] if isinstance(value, dict) else value
    return target(what, f"at most {number(limit)}{' ' + unit if unit else ''}", value, None if middle is None else middle <= limit, unit)


def number(value):
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10000 else str(value)
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3f}"


def cell(value):
    if isinstance(value, dict):
        if value["min"] == value["max"]:
            return number(value["median"])
        return f"{number(value['median'])} ({number(value['min'])} .. {number(value['max'])})"
    return value if isinstance(value, str) else number(value)


def measured(t):
    """What a target came to, with its unit."""
    value = cell(t["measured"])
    return f"{value} {t['unit']}" if value and t["unit"] else value


def verdict(t):
    return "not measured" if t["met"] is None else "met" if t["met"] else "missed"


def _targets_table(targets):
    rows = [[t["what"], t["limit"], measured(t), verdict(t)] for t in targets]
    return table("targets", ["what", "target", "measured", ""], rows)


def _tables(section):
    return section["tables"] + ([_targets_table(section["targets"])] if section["targets"] else [])


# ---- text ----

def _text_table(t):
    rows = [t["columns"]] + [[cell(value) for value in row] for row in t["rows"]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(t["columns"]))]
    lines = ["  " + "  ".join(value.ljust(width) if i == 0 else value.rjust(width) for i, (value, width) in enumerate(zip(row, widths))).rstrip()
             for row in rows]
    return "\n".join([f"{t['title']}:"] + lines + ([f"  {t['note']}"] if t["note"] else []))


def text_of_environment(e):
    versions = ", ".join(f"{name} {version}" for name, version in e["versions"].items())
    return (f"{e['cpu']}, {e['cores']} cores, {e['memory_gib']} GiB; load {e['load']} at the start\n{versions}\n"
            "median (least .. most); ratios pair by pair, in runs that take turns")


def text_of_section(section):
    parts = [f"== {section['name']}: {section['title']} ({section['seconds']:.0f} s)"]
    parts += [_text_table(t) for t in _tables(section)]
    parts += [f"skipped: {text}" for text in section["skipped"]]
    parts += [f"failed: {section['failed']}"] if section["failed"] else []
    return "\n".join(parts)


# ---- the page ----

def _markdown_table(t):
    head = "| " + " | ".join(t["columns"]) + " |\n|" + "---|" * len(t["columns"])
    rows = ["| " + " | ".join(cell(value).replace("|", "\\|") for value in row) + " |" for row in t["rows"]]
    title = t["title"][0].upper() + t["title"][1:]
    return f"{title}:\n\n" + "\n".join([head] + rows) + (f"\n\n{t['note']}" if t["note"] else "")


def _page_environment(report):
    e = report["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in e["versions"].items())
    return (f"{e['cpu']}, {e['cores']} cores, {e['memory_gib']} GiB; load average {e['load']} at the start; commit {e['commit']}; {report['mode']} mode.\n"
            f"{versions}.")


def _page_section(section):
    skipped = [f"Skipped: {text}." for text in section["skipped"]]
    return "\n\n".join([_markdown_table(t) for t in _tables(section)] + skipped)


def _page_targets(report):
    rows = [[s["name"], t["what"], t["limit"], measured(t), verdict(t)] for s in report["sections"] for t in s["targets"]]
    return _markdown_table(table("targets", ["section", "what", "target", "measured", ""], rows)).split("\n\n", 1)[1]


def update_page(page, report):
    """The page with what is between `<!-- bench: NAME -->` and `<!-- end -->` made from the report; other names stay."""
    made = {"environment": _page_environment(report), "targets": _page_targets(report)}
    made.update({section["name"]: _page_section(section) for section in report["sections"] if not section["failed"]})

    def replace(match):
        return f"{match.group(1)}\n{made[match.group(2)]}\n{match.group(4)}" if match.group(2) in made else match.group(0)
    return re.sub(r"(<!-- bench: (\w+) -->)(.*?)(<!-- end -->)", replace, page, flags=re.S)
