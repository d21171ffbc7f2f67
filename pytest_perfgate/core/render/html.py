"""Documents as HTML, as Markdown, and as a comment on a change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape as html_escape
from typing import NamedTuple

from pytest_perfgate.core.judge.policy import run_code
from pytest_perfgate.core.render.block import render_block, render_blocks, unlinked
from pytest_perfgate.core.render.report import by_outcome, families_of, headline, sentence, summary_line, verdict_table
from pytest_perfgate.core.render.text import (
    cell_text,
    clip,
    heading,
    is_absent,
    is_number,
    left_out,
    picture_lines,
    shown_rows,
)
from pytest_perfgate.core.render.words import ABSENT, HEADING, note_word, other_notes, own_gate_lines, plural, printable
from pytest_perfgate.model.metric import Block, Bullets, Cell, Code, Document, Link, Paragraph, Picture, Section, Table
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.values import first_of
from pytest_perfgate.model.verdict import Annotation, RunReport

_SHOWN, _SHORT, _LONG = 500, 16, 300
"""Rows of a page; the text that is not wrapped, since that would hardly save width; the name that is folded."""

_JOINT, _BREAK = re.compile(r"(?<=::)(?=\w)|(?<=[a-z\d]_)(?=[a-z\d])|(?<=\w)(?=[\[(])|(?<=[\w\]])(?=#)"), "<wbr>"
"""Where a long name may be broken: between its words."""

_OPTION = re.compile(r"(?<![\w-])--\w[\w-]*")  # browsers break a line after each of its hyphens

_OUTCOMES = frozenset(outcome.value.upper() for outcome in Outcome)

_OUTCOME = re.compile(rf"({'|'.join(sorted(_OUTCOMES))})(?= [-+]| *$|(?-i:(?<=[A-Z])) \d)", re.IGNORECASE)
"""Matches an outcome, alone or before a change, as in a column for each device."""


def render_html(documents: Document | Sequence[Document]) -> str:
    """Return one page of one or several documents, with contents if there are many sections."""
    pages = [documents] if isinstance(documents, Document) else list(documents)
    body = "\n".join(line for number, page in enumerate(pages) for line in _document(page, number))
    title = html_escape(pages[0].title if pages else "perfgate")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _document(document: Document, number: int) -> Iterator[str]:
    yield f"<header><h1>{html_escape(document.title)}</h1>"
    if document.subtitle:
        yield f'<p class="subtitle">{html_escape(document.subtitle)}</p>'
    yield "</header>"
    sections = [block for block in document.blocks if isinstance(block, Section)]
    anchors = [html_escape(s.anchor or f"s{number}-{i}", quote=True) for i, s in enumerate(sections)]
    if len(sections) > 3:
        links = (f'<a href="#{anchor}">{html_escape(s.title)}</a>' for anchor, s in zip(anchors, sections))
        yield f"<nav>{' '.join(links)}</nav>"
    own = iter(anchors)
    for block in document.blocks:
        if isinstance(block, Section):
            yield from _section(block, 2, next(own))
        else:
            yield from _block(block, 2)


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield f"<p>{_prose(block.text)}</p>"
    elif isinstance(block, Bullets):
        tag = "ol" if block.ordered else "ul"
        yield f"<{tag}>{''.join(f'<li>{_prose(item)}</li>' for item in block.items)}</{tag}>"
    elif isinstance(block, Code):
        yield f"<pre><code>{''.join(map(_line, block.text.splitlines()))}</code></pre>"
    elif isinstance(block, Link):
        yield f'<p><a href="#{html_escape(block.anchor, quote=True)}">{html_escape(block.text)}</a></p>'
    elif isinstance(block, Picture):
        both = f'<div class="wide">{block.svg}</div><div class="narrow">{block.narrow}</div>'
        yield f"<figure><figcaption>{html_escape(block.alt)}</figcaption>{both if block.narrow else block.svg}</figure>"
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _section(block, level, html_escape(block.anchor, quote=True))


def _prose(text: str) -> str:
    return _OPTION.sub(r"<kbd>\g<0></kbd>", html_escape(text))


def _line(text: str) -> str:
    """Return a line, which continues below its text; an outcome at its start has its colour."""
    word = next((outcome for outcome in _OUTCOMES if text.startswith(f"{outcome} ")), "")
    head = f'<b class="{word.lower().replace(" ", "-")}">{word}</b>' if word else ""
    return f"<span>{head}{_prose(text[len(word) :])}\n</span>"


def _section(section: Section, level: int, anchor: str) -> Iterator[str]:
    mark = f' id="{anchor}"' if anchor else ""
    yield f"<section{mark}><h{min(level, 6)}>{html_escape(section.title)}</h{min(level, 6)}>"
    for block in section.blocks:
        yield from _block(block, level + 1)
    yield "</section>"


def _table(table: Table) -> Iterator[str]:
    """Yield a table that scrolls on a narrow screen; rows beyond a page are folded."""
    if table.title:
        yield f'<p class="caption">{html_escape(table.title)}</p>'
    shown, table = table.limit or _SHOWN, table.filled
    yield from _rows(table, 0, shown) if table.rows or not table.note else ()
    if len(table.rows) > shown:
        yield f"<details><summary>{len(table.rows) - shown:,} more rows</summary>"
        yield from _rows(table, shown, shown + 20 * _SHOWN)
        hidden = len(table.rows) - shown - 20 * _SHOWN
        yield f"<p class='note'>{hidden:,} more are in the CSV</p></details>" if hidden > 0 else "</details>"
    if table.note:
        yield f'<p class="note">{_prose(table.note)}</p>'


def _rows(table: Table, first: int, last: int) -> Iterator[str]:
    sides = ["number" if is_number(column) else "text" for column in table.columns]
    heads = "".join(f'<th class="{s}" scope="col">{html_escape(heading(c))}</th>' for c, s in zip(table.columns, sides))
    named = ' class="second"' if table.columns[0].name == "outcome" else ""
    yield f'<div class="table"><table{named}><thead><tr>{heads}</tr></thead><tbody>'
    for row in table.rows[first:last]:
        cells = zip(row, table.columns, sides)
        yield f"<tr>{''.join(_cell(cell, cell_text(cell, column), side) for cell, column, side in cells)}</tr>"
    yield "</tbody></table></div>"


def _cell(cell: Cell, text: str, side: str) -> str:
    if is_absent(cell) or text == ABSENT:
        return f'<td class="{side} absent">{html_escape(text)}</td>'
    if outcome := _OUTCOME.match(text):
        word, rest = outcome[1], html_escape(text[outcome.end() :])
        return f'<td class="{side}"><span class="outcome {word.lower().replace(" ", "-")}">{word}</span>{rest}</td>'
    if side == "text" and len(text) <= _SHORT:
        return f'<td class="text short">{html_escape(text)}</td>'
    whole = _JOINT.sub(_BREAK, _prose(text)) if side == "text" else html_escape(text)
    if len(text) > _LONG and ("<" in text or " " not in text):  # template arguments, or a word that fills the screen
        whole = f"<details><summary>{html_escape(f'{text[:100]}…{text[-60:]}')}</summary>{whole}</details>"
    return f'<td class="{side}">{whole}</td>'


STYLE = """
:root { color-scheme: light dark; --ink:#1b1f24; --soft:#5b6570; --line:#d8dee4; --paper:#fff; --tint:#f5f7f9;
  --good:#1a7f37; --warn:#8a5a00; --bad:#b3261e; --link:#0b5cad; --mark:#2f6fb7; --mark2:#b3541e;
  --shade:#0003; --f1:#a9c8ec; --f2:#f6b48a; --f3:#bfe3c8; --f4:#d9c8ec; --f5:#f2dd94; --f6:#eef1f4 }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ec; --soft:#9aa5b1; --line:#30363d; --paper:#0f1318;
  --tint:#171c22; --good:#56d364; --warn:#e3b341; --bad:#ff7b72; --link:#79b8ff; --mark:#79b8ff; --mark2:#f0a070;
  --shade:#fff4; --f1:#2d5683; --f2:#8a4a20; --f3:#245c3b; --f4:#57407c; --f5:#665312; --f6:#262d35 } }
body { margin:0; background:var(--paper); color:var(--ink); font:16px/1.55 system-ui, sans-serif }
* { box-sizing: border-box } main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
p, li, h2, h3, h4, h5, h6, figcaption, .caption { overflow-wrap:anywhere } kbd { font:inherit; white-space:nowrap }
header ~ header { margin-top:3.5rem; border-top:2px solid var(--line) }
h1 { font-size:1.7rem; line-height:1.2; margin:1rem 0 .2rem; overflow-wrap:anywhere }
h2 { font-size:1.25rem; margin:2.2rem 0 .6rem; padding-bottom:.25rem; border-bottom:1px solid var(--line) }
h3 { font-size:1.05rem; margin:1.6rem 0 .4rem } h4,h5,h6 { font-size:1rem; margin:1.2rem 0 .3rem }
.subtitle, .note { color:var(--soft); margin:.2rem 0 1rem } .note { font-size:.9rem }
figcaption { font-weight:600; margin:0 0 .6rem } .caption { font-weight:600; margin:1.2rem 0 .4rem }
nav { display:flex; flex-wrap:wrap; gap:.3rem 1rem; margin:1rem 0; font-size:.95rem } a { color:var(--link) }
.table { overflow-x:auto; margin:.6rem 0 1rem; border:1px solid var(--line); border-radius:6px; background:
  linear-gradient(to left, var(--paper) 40%, transparent) right / 4rem 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 1.8rem 100% no-repeat scroll }
table { border-spacing:0; width:100%; font-size:.92rem; font-variant-numeric:tabular-nums }
th, td { padding:.4rem .7rem; text-align:left; vertical-align:top; border-top:1px solid var(--line) }
thead th { border-top:0; --cell:var(--tint); background:var(--cell); white-space:nowrap }
.table table:not(.second) :is(th, td):first-child, .second :is(th, td):nth-child(2) { position:sticky; left:0;
  background:var(--cell, var(--paper)); box-shadow:var(--edge, none); max-width:var(--most, none) }
.number { text-align:right; white-space:nowrap } td.text { overflow-wrap:anywhere; min-width:7.5rem }
td.short { white-space:nowrap; min-width:0 } td.absent { color:var(--soft); font-style:italic }
.outcome { font-weight:600; font-size:.85em; letter-spacing:.03em; border:1px solid; border-radius:4px;
  padding:.05rem .4rem; white-space:nowrap } .passed, .improved, .accepted { color:var(--good) }
.moved, .suspect, .unstable, .undecided, .unbaselined, .not-measured, .not-applicable { color:var(--warn);
  border-style:dashed } .regressed, .broken, .invalid { color:var(--bad); border-width:2px }
pre { background:var(--tint); border:1px solid var(--line); border-radius:6px; padding:.8rem; overflow-x:auto;
  white-space:pre-wrap; overflow-wrap:anywhere; font-size:.88rem } pre b { border:0 !important }
pre span { display:block; padding-left:8ch; text-indent:-8ch }
figure { margin:1.2rem 0 2.2rem; overflow-x:auto } figure svg { max-width:100%; height:auto; color:var(--ink) }
figure .wide svg { width:60rem } figure .narrow { display:none }
@media (max-width: 44rem) { figure .wide { display:none } figure .narrow { display:block; max-width:30rem }
  figure .narrow svg { width:100% } th, td { padding:.4rem .5rem }
  table { --edge:1px 0 var(--line), .4rem 0 .4rem -.3rem var(--shade); --most:45vw } }
details > summary { cursor:pointer; color:var(--link); margin:.4rem 0 } td summary { margin:0 }
td.text:has(summary) { min-width:min(10rem, 45vw) } @media print { nav { display:none } .table { overflow:visible } }
"""

_MARKDOWN, _COMMENT_ROWS = 100, 20  # characters of a picture's bars, and of a name in a comment; its blocks and rows

_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|(?<=\S)\*|\*(?=\S)|(?<=\])\(")


def render_markdown(document: Document, level: int = 1) -> str:
    """Return the document as GitHub-flavoured Markdown."""
    lines = [f"{'#' * level} {harmless(document.title)}"]
    lines += ["", harmless(document.subtitle)] if document.subtitle else []
    for block in document.blocks:
        lines += ["", *_markdown_block(block, level + 1)]
    return "\n".join(lines) + "\n"


def _markdown_block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield harmless(block.text)
    elif isinstance(block, Bullets):
        yield from (f"{f'{n}.' if block.ordered else '-'} {harmless(item)}" for n, item in enumerate(block.items, 1))
    elif isinstance(block, Code):
        fence = "`" * max(3, max(map(len, re.findall("`+", block.text)), default=0) + 1)
        yield from (f"{fence}{block.language}", block.text.rstrip("\n"), fence)
    elif isinstance(block, Link):
        yield f"[{escape(block.text)}](#{block.anchor})"
    elif isinstance(block, Picture):
        yield f"*{harmless(block.alt)}*"
        if block.bars:
            yield from ("", "```text", *list(picture_lines(block, _MARKDOWN))[1:], "```")
    elif isinstance(block, Table):
        yield from _markdown_table(block)
    else:
        yield from _markdown_section(block, level)


def _markdown_section(section: Section, level: int) -> Iterator[str]:
    if section.anchor:
        yield from (f'<a id="{section.anchor}"></a>', "")
    yield f"{'#' * min(level, 6)} {harmless(section.title)}"
    for block in section.blocks:
        yield ""
        yield from _markdown_block(block, level + 1)


def _markdown_table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{harmless(table.title)}**", "")
    if not table.rows and table.note:
        yield harmless(table.note)
        return
    yield f"| {' | '.join(escape(heading(column)) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if is_number(column) else '---' for column in table.columns)}|"
    for row in shown_rows(table):
        yield f"| {' | '.join(map(escape, row))} |"
    for line in (left_out(table), table.note):
        if line:
            yield from ("", harmless(line))


def harmless(text: str) -> str:
    """Return prose in which template arguments and pointers are not read as tags and emphasis."""
    return _MARKUP.sub(lambda match: f"\\{match.group()}", text)


def escape(text: str) -> str:
    """Return text that stays in one cell and contains no markup."""
    for char in "\\`*_[]<>|~&":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


def render_comment(report: RunReport, *, only_changes: bool = False) -> str:
    """Return Markdown with a short summary and folded details, or only with what needs attention."""
    cases = sorted(report.cases, key=by_outcome)
    shown_cases = [case for case in cases if case.effect is not Effect.PASS or case.worst is Outcome.ACCEPTED]
    lines = [f"### perfgate: {headline(report)}", ""]
    edits = own_gate_lines(report.cases, report.notes)
    lines += [f"**{sentence(HEADING)}**", "", *_bullets(edits), ""] if edits else []
    lines += [f"{summary_line(report)} {_place(report)}".rstrip(), ""]
    notes = other_notes(report.cases, report.notes)
    words = [f"**{word}** " if (word := note_word(note)) else "" for note in notes]
    lines += [*(f"- {word}{unlinked(escape(note.sentence))}" for word, note in zip(words, notes)), ""] if notes else []
    blocks = list(render_blocks(shown_cases, brief=True))
    for block in blocks[:_COMMENT_ROWS]:
        fence = "`" * (3 + block.count("```"))
        lines += [f"{fence}text", block, fence, ""]
    lines += [f"and {len(blocks) - _COMMENT_ROWS:,} more", ""] if len(blocks) > _COMMENT_ROWS else []
    lines += ["RECORD is the record of this run, an artifact of its job.", ""] if "--from RECORD" in str(lines) else []
    if only_changes:
        return "\n".join(lines).rstrip() + "\n"
    families, count = tuple(families_of(report, drawn=False)), plural(len(cases), "case")
    lines += [_short_page(families, 2, _COMMENT_ROWS), ""] if families else []
    table = _short_page((verdict_table(cases),), 1, 10 * _COMMENT_ROWS)
    return "\n".join([*lines, f"<details><summary>All {count}</summary>\n", table, "", "</details>\n"])


def _short_page(blocks: Sequence[Block], level: int, most: int) -> str:
    page = Document(title="", blocks=tuple(_brief(block, most) for block in blocks))
    return unlinked(render_markdown(page, level).partition("\n")[2].strip())


def _brief(block: Block, most: int) -> Block:
    """Return a block with few rows and parts, and no name so long that the figures beside it are out of view."""
    if isinstance(block, Section):
        more = f"and {len(block.blocks) - most:,} more tables" if len(block.blocks) > most else ""
        blocks = (*(_brief(one, most) for one in block.blocks[:most]), *([Paragraph(text=more)] if more else []))
        return replace(block, blocks=blocks)
    if not isinstance(block, Table):
        return block
    rows = [tuple(clip(c, widest=_MARKDOWN) if isinstance(c, str) else c for c in row) for row in block.rows]
    return replace(block, rows=tuple(rows), limit=most, rest="perfgate report shows all")


def _place(report: RunReport) -> str:
    """Return the commit and the device, since an edited comment must say what it is about."""
    commit = report.environment.commit[:10]
    commit += " with changes" if commit and report.environment.dirty else ""
    devices = sorted({m.device.name or m.device.key for m in (case.measurement for case in report.cases) if m})
    parts = [f"{word} {_code(text)}" for word, text in (("commit", commit), ("on", first_of(devices, 3))) if text]
    return f"{sentence(' '.join(parts))}." if parts else ""


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', '')}`"


def _bullets(edits: Sequence[tuple[str, str]]) -> list[str]:
    lines = [f"- {word}: {_code(text)}" for word, text in edits[:_COMMENT_ROWS]]
    return lines + ([f"- and {len(edits) - _COMMENT_ROWS:,} more"] if len(edits) > _COMMENT_ROWS else [])


_ANNOTATED = 10  # the most annotations that GitHub shows for one step

_OPEN = frozenset({Outcome.UNDECIDED, Outcome.SUSPECT, Outcome.UNSTABLE, Outcome.INVALID})  # without a decision


class CommentWords:
    """The texts of a run for places where changes are discussed."""

    def comment(self, report: RunReport, *, only_changes: bool = False) -> str:
        return render_comment(report, only_changes=only_changes)

    def annotations(self, report: RunReport) -> tuple[Annotation, ...]:
        """Return an annotation on each of the worst tests that need attention."""
        cases = sorted(report.cases, key=by_outcome)
        return tuple(
            Annotation(
                path=case.key.path,
                test=case.key.test_id.partition("[")[0].rpartition("::")[2],
                level="failure" if case.effect is Effect.FAIL else "warning",
                title=f"{case.worst.value}: {printable(case.key.test)}",
                message=render_block(case).strip(),
            )
            for case in cases
            if case.effect is not Effect.PASS
        )[:_ANNOTATED]

    def conclusion(self, report: RunReport) -> str:
        """Return ``failure``, ``neutral`` if verdicts are open or cases are missing, else ``success``."""
        if run_code(report, report.status):
            return "failure"
        return "neutral" if not report.complete or any(case.worst in _OPEN for case in report.cases) else "success"

    def clean(self, report: RunReport) -> str:
        """Return one line if nothing in a run needs attention, else ""."""
        effects = {*(note.effect for note in report.notes), *(case.effect for case in report.cases)}
        accepted, whole = own_gate_lines(report.cases, ()), report.complete and not run_code(report, report.status)
        if not report.cases or effects != {Effect.PASS} or accepted or not whole:
            return ""
        return f"perfgate: {plural(len(report.cases), 'case')}, {headline(report)}. {_place(report)}".rstrip()


class Markup(NamedTuple):
    """The content of a table cell: markup, and whether it is a number."""

    html: str
    number: bool = False
    kind: str = ""


def markup_text(text: str) -> Markup:
    return Markup(html_escape(printable(text)), kind="s" if len(text) <= _SHORT else "")


def markup_table(heads: Sequence[str], rows: Sequence[Sequence[Markup]]) -> Iterator[str]:
    """Yield a table without its empty columns."""
    if not rows:
        return
    full = [at for at in range(len(heads)) if any(row[at].html for row in rows)]
    kinds = {at: _column_kind([row[at] for row in rows]) for at in full}
    places = " ".join(f"{kinds[at]}{place}" for place, at in enumerate(full, 1) if kinds[at])
    yield f'<div class="table"><table class="{places}"><thead><tr>'
    yield "".join(f"<th scope=col>{heads[at]}" for at in full) + "<tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td{_class(row[at], kinds[at])}>{row[at].html}" for at in full)
    yield "</table></div>"


def _column_kind(cells: Sequence[Markup]) -> str:
    kind = "s" if all(cell.kind == "s" or not cell.html for cell in cells) else ""
    return "n" if any(cell.number for cell in cells) else kind


def _class(cell: Markup, column: str) -> str:
    return "" if cell.kind in {"", column} else f" class={cell.kind}"
