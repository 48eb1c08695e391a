#!/usr/bin/env python3
"""Links of the pages lead somewhere: files and folders of the repository exist, anchors are headings of the page that they name, every page is in the
navigation, and the site that is built of them has no link to nowhere either. Links to other hosts are not asked for.

Environment: VISA_SOURCE. Exit status 77: there is no markdown-it."""
import os
import pathlib
import re
import sys
import tempfile

import visa_tools

visa_tools.of_debian("markdown_it", "python3-markdown-it")

SOURCE = pathlib.Path(visa_tools.SOURCE).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "docs" / "site"))
import build
import page as reading

OUTSIDE = re.compile(r"[a-z][a-z+.-]*:")
MADE = re.compile(r'\b(id|href|src)="([^"]*)"')


def fault_of(name, link, pages):
    """What is wrong with a link on a page of the repository, or nothing."""
    path, mark, anchor = link.partition("#")
    if path.startswith("/"):
        return "begins at the root, which is another one on every host"
    target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
    if target.startswith(".."):
        return "leads out of the repository"
    if not (SOURCE / target).exists():
        return "is not there"
    if mark and target not in pages:
        return "has an anchor in a file that is no page"
    if mark and anchor not in pages[target].anchors:
        return f"has no such heading; {target} has {', '.join(sorted(pages[target].anchors)[:40])}"
    return None


def faults_of_pages(pages):
    count, faults = 0, []
    for name, page in pages.items():
        for link in page.targets():
            if OUTSIDE.match(link):
                continue
            count += 1
            wrong = fault_of(name, link, pages)
            if wrong:
                faults.append(f"{name}: `{link}` {wrong}")
    return count, faults


def faults_of_site(out):
    """Of the files that were built: the generator's own mistakes."""
    ids, links = {}, []
    for path in out.rglob("*.html"):
        found = MADE.findall(path.read_text())
        ids[path.resolve()] = {value for kind, value in found if kind == "id"}
        links += [(path, value) for kind, value in found if kind != "id"]
    faults = []
    for path, link in links:
        file, mark, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path.resolve()
        if not OUTSIDE.match(link) and (not target.is_file() or mark and anchor not in ids.get(target, ())):
            faults.append(f"site: {path.relative_to(out)}: {link} leads nowhere")
    return len(links), faults


def main():
    names = [*build.page_files(), *(str(p.relative_to(SOURCE)) for p in (SOURCE / "examples").rglob("README.md")), "test/cases/README.md"]
    pages = {name: reading.Page((SOURCE / name).read_text()) for name in names}
    count, faults = faults_of_pages(pages)
    made = 0
    if not faults:  # of broken links no site is made
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder).resolve()
            build.Site(out).build()
            made, faults = faults_of_site(out)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {count} links; {made} links of the site; {len(faults)} lead nowhere")
    return 1 if faults or not made else 0


if __name__ == "__main__":
    sys.exit(main())
