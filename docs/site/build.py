#!/usr/bin/env python3
"""docs/ as a site of plain files: `build.py FOLDER`, or `./visa site`, which writes build/site.

README.md is its first page, and its tables of pages are the navigation: a page that stands in none of them ends this with an error. Files of the
repository that a page links to become pages that show their text, folders a list of names. No script, nothing from elsewhere: the folder can be opened
from disk."""
import html
import os
import pathlib
import re
import shutil
import sys

try:
    import markdown_it  # noqa: F401
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's packages belong to Debian's Python
    print("skipped: markdown-it is missing: apt-get install python3-markdown-it")
    sys.exit(77)
import page as reading

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
PICTURES = {".png", ".svg", ".jpg"}

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{root}style.css">
<a class="skip" href="#main">To the text</a>
<nav aria-label="pages">
{navigation}</nav>
<main id="main">
{body}{after}</main>
</html>
"""


def page_files():
    """The Markdown files that are pages, from the folder of the repository."""
    first = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    return first + sorted(str(p.relative_to(SOURCE)) for p in (SOURCE / "docs").rglob("*.md"))


def groups(readme):
    """[(heading, [page])]: the tables of README.md that say which pages there are, and the engines, which it names by their folder."""
    found = []
    for table in re.findall(r"^\| ([^|\n]+) \| \|\n\|---\|---\|\n((?:\|.*\n)+)", readme, re.M):
        links = re.findall(r"\]\(((?:docs/[\w./-]+|[A-Z]+)\.md)\)", table[1])
        found.append((table[0], links))
    found.append(("engines", sorted(str(p.relative_to(SOURCE)) for p in (SOURCE / "docs" / "engine").glob("*.md"))))
    return found


def place_of(name):
    """Where a file of the repository is in the site."""
    if name == "README.md":
        return "index.html"
    if name.endswith(".md") and not name.startswith("../"):
        return name[:-3] + ".html"
    return name if pathlib.Path(name).suffix in PICTURES else f"source/{name.rstrip('/')}.html"


class Site:
    def __init__(self, out):
        self.out = out
        self.pages = {name: reading.Page((SOURCE / name).read_text()) for name in page_files()}
        self.groups = groups((SOURCE / "README.md").read_text())
        self.order = ["README.md", *(name for _, names in self.groups for name in names)]
        self.wanted = set()  # files that pages link to
        missing = sorted(set(self.pages) - set(self.order))
        if missing:
            sys.exit(f"no table of README.md names {', '.join(missing)}")

    def target(self, page, link):
        """A link of a page, as one of the site."""
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return link
        path, mark, anchor = link.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if name not in self.pages:
            self.wanted.add(name)
        return os.path.relpath(place_of(name), os.path.dirname(place_of(page)) or ".") + mark + anchor

    def navigation(self, page):
        """All pages by group, and the sections of this one under its name."""
        lines = [self.entry(page, "README.md", "visac")]
        for heading, names in self.groups:
            lines.append(f"<h2>{html.escape(heading)}</h2>\n<ul>\n")
            lines += [f"<li>{self.entry(page, name, self.pages[name].title())}</li>\n" for name in names]
            lines.append("</ul>\n")
        return "".join(lines)

    def entry(self, page, name, title):
        here = ' aria-current="page"' if name == page else ""
        link = f'<a href="{self.target(page, name_from(page, name))}"{here}>{html.escape(title)}</a>'
        parts = [(text, anchor) for level, text, anchor in self.pages[name].headings if level == 2]
        if not here or not 1 < len(parts) < 30:
            return link + "\n"
        return link + "\n<ul>" + "".join(f'<li><a href="#{a}">{html.escape(t)}</a></li>' for t, a in parts) + "</ul>\n"

    def around(self, page):
        """The pages before and after, in the order of the navigation."""
        if page not in self.order:
            return ""
        at, links = self.order.index(page), []
        for step, rel in ((-1, "prev"), (1, "next")):
            if 0 <= at + step < len(self.order):
                name = self.order[at + step]
                links.append(f'<a rel="{rel}" href="{self.target(page, name_from(page, name))}">{html.escape(self.pages[name].title())}</a>')
        return f"<footer>{' '.join(links)}</footer>\n"

    def write(self, place, title, navigation, body, after=""):
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        root = "../" * place.count("/")
        path.write_text(PAGE.format(title=html.escape(title), root=root, navigation=navigation, body=body, after=after))

    def build(self):
        for name, page in self.pages.items():
            for token, attribute in page.link_tokens():
                token.attrSet(attribute, self.target(name, token.attrGet(attribute)))
            body = re.sub(r"<table>.*?</table>", r'<div class="wide">\g<0></div>', page.html(), flags=re.S)
            body = re.sub(r"(?m)^((?:<pre><code[^>]*>)?)(\$ .*)$", r"\1<b>\2</b>", body)
            self.write(place_of(name), page.title(), self.navigation(name), body, self.around(name))
        for name in sorted(self.wanted):
            self.show(name)
        shutil.copy(HERE / "style.css", self.out / "style.css")

    def show(self, name):
        """A file or a folder of the repository that is no page."""
        path, place = SOURCE / name, place_of(name)
        if path.suffix in PICTURES:
            (self.out / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.out / place)
            return
        text = "\n".join(sorted(p.name for p in path.iterdir())) if path.is_dir() else path.read_text(errors="replace")
        link = f'<a href="{"../" * place.count("/")}index.html">visac</a>\n'
        self.write(place, name, link, f"<h1>{html.escape(name)}</h1>\n<pre><code>{html.escape(text)}</code></pre>\n")


def name_from(page, name):
    return os.path.relpath(name, os.path.dirname(page) or ".")


def main(arguments):
    if len(arguments) != 1:
        sys.exit("Usage: build.py FOLDER")
    out = pathlib.Path(arguments[0])
    if out.exists() and not (out / "style.css").exists() and any(out.iterdir()):
        sys.exit(f"{out} holds something else than a site")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = Site(out)
    site.build()
    print(f"{out}: {len(site.pages)} pages, {len(site.wanted)} files that they show; open {out}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
