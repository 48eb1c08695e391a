"""A page as GitHub reads it: its tokens, its links, the anchors of its headings. Both the site and the test of links (test/links.py) read pages by this."""
import re

import markdown_it

READER = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
HTML_LINK = re.compile(r'\b(?:href|src)="([^"]*)"')


def text_of(inline):
    """What a reader sees of a heading, without marks."""
    return "".join(t.content for t in inline.children or [] if t.type in ("text", "code_inline"))


def slug(text, used):
    """The anchor that GitHub gives a heading: `used` counts those of the page so far."""
    base = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    count = used.get(base, 0)
    used[base] = count + 1
    return f"{base}-{count}" if count else base


class Page:
    def __init__(self, text):
        self.tokens = READER.parse(text)
        self.headings = []  # (level, text, anchor)
        used = {}
        for i, token in enumerate(self.tokens):
            if token.type == "heading_open":
                text = text_of(self.tokens[i + 1])
                anchor = slug(text, used)
                token.attrSet("id", anchor)
                self.headings.append((int(token.tag[1]), text, anchor))
        self.anchors = {anchor for _, _, anchor in self.headings}

    def title(self):
        return self.headings[0][1] if self.headings else ""

    def link_tokens(self):
        """(token, attribute) of each link and picture that Markdown made."""
        for block in self.tokens:
            for token in block.children or []:
                if token.type == "link_open":
                    yield token, "href"
                elif token.type == "image":
                    yield token, "src"

    def targets(self):
        """Of links, pictures and HTML."""
        found = [token.attrGet(attribute) for token, attribute in self.link_tokens()]
        for block in self.tokens:
            for token in [block, *(block.children or [])]:
                if token.type in ("html_block", "html_inline"):
                    found += HTML_LINK.findall(token.content)
        return found

    def html(self):
        return READER.renderer.render(self.tokens, READER.options, {})
