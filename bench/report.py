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


def none_of(what, missed, count):
    """A goal that each of `count` things has to meet; `missed`: what is said of those that do not."""
    return target(what, "none", f"{len(missed)} of {count}" + (f": {'; '.join(missed)}" if missed else ""), not missed if count else None)


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


def _versions(e):
    return ", ".join(f"{name} {version}" for name, version in e["versions"].items())


def _where(report, load):
    """On what, how busy, of which commit and how long: of a section as of a whole run."""
    e = report["environment"]
    return (f"{e['cpu']}{' (' + ', '.join(e['levels']) + ')' if e['levels'] else ''}, {e['cores']} cores, {e['memory_gib']} GiB; "
            f"load average {load} at the start; commit {e['commit']}; {report['mode']} mode.")


def _page_section(report, section):
    skipped = [f"Skipped: {text}." for text in section["skipped"]]
    return "\n\n".join([_markdown_table(t) for t in _tables(section)] + skipped + [_where(report, section["load"])])


def _page_targets(report, old, others):
    """Rows of the sections that ran; those of `others` stay as the page has them, in the order of all."""
    ran = {s["name"]: [[s["name"], t["what"], t["limit"], measured(t), verdict(t)] for t in s["targets"]] for s in report["sections"] if not s["failed"]}
    kept = {}
    for line in old.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0] in others:
            kept.setdefault(cells[0], []).append(cells)
    rows = [row for name in report["order"] for row in (ran[name] if name in ran else kept.get(name, []))]
    return _markdown_table(table("targets", ["section", "what", "target", "measured", ""], rows)).split("\n\n", 1)[1]


def update_page(page, report):
    """The page with what is between `<!-- bench: NAME -->` and `<!-- end -->` made from the report; other names stay, and so do the rows of
    sections that did not run, or that lack what they measure. Each section says where it was measured, since they need not be of one run."""
    made = {section["name"]: _page_section(report, section) for section in report["sections"] if not section["failed"] and section["tables"]}
    others = set(report["order"]) - set(made)
    if not others:
        made["environment"] = f"{_where(report, report['environment']['load'])}\n{_versions(report['environment'])}."

    def replace(match):
        if match.group(2) == "targets":
            return f"{match.group(1)}\n{_page_targets(report, match.group(3), others)}\n{match.group(4)}"
        return f"{match.group(1)}\n{made[match.group(2)]}\n{match.group(4)}" if match.group(2) in made else match.group(0)
    return re.sub(r"(<!-- bench: (\w+) -->)(.*?)(<!-- end -->)", replace, page, flags=re.S)
