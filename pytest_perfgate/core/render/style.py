"""The look of a page: one small style sheet for light, dark, narrow and printed."""

STYLE = """
:root { color-scheme: light dark; --ink:#1b1f24; --soft:#5b6570; --line:#d8dee4; --paper:#fff; --tint:#f5f7f9;
  --good:#1a7f37; --warn:#8a5a00; --bad:#b3261e; --link:#0b5cad; --mark:#2f6fb7; --mark2:#c4622d; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ec; --soft:#9aa5b1; --line:#30363d; --paper:#0f1318;
  --tint:#171c22; --good:#56d364; --warn:#e3b341; --bad:#ff7b72; --link:#79b8ff; --mark:#79b8ff; --mark2:#f0a070; } }
* { box-sizing: border-box }
body { margin:0; background:var(--paper); color:var(--ink); font:16px/1.55 system-ui, sans-serif }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
header ~ header { margin-top:3.5rem; border-top:2px solid var(--line) }
h1 { font-size:1.7rem; line-height:1.2; margin:1rem 0 .2rem; overflow-wrap:anywhere }
h2 { font-size:1.25rem; margin:2.2rem 0 .6rem; padding-bottom:.25rem; border-bottom:1px solid var(--line) }
h3 { font-size:1.05rem; margin:1.6rem 0 .4rem } h4,h5,h6 { font-size:1rem; margin:1.2rem 0 .3rem }
.subtitle, .note, figcaption { color:var(--soft); margin:.2rem 0 1rem } .note, figcaption { font-size:.9rem }
.caption { font-weight:600; margin:1.2rem 0 .4rem }
nav { display:flex; flex-wrap:wrap; gap:.3rem 1rem; margin:1rem 0; font-size:.95rem } a { color:var(--link) }
.table { overflow-x:auto; margin:.6rem 0 1rem; border:1px solid var(--line); border-radius:6px }
table { border-collapse:collapse; width:100%; font-size:.92rem; font-variant-numeric:tabular-nums }
th, td { padding:.4rem .7rem; text-align:left; vertical-align:top; border-top:1px solid var(--line) }
thead th { border-top:0; background:var(--tint); white-space:nowrap; position:sticky; top:0 }
.number { text-align:right; white-space:nowrap } td.text { overflow-wrap:anywhere; min-width:7.5rem }
td.short { white-space:nowrap; min-width:0 }
td.absent { color:var(--soft); font-style:italic }
.outcome { font-weight:600; font-size:.85em; letter-spacing:.03em; border:1px solid; border-radius:4px;
  padding:.05rem .4rem; white-space:nowrap }
.passed, .improved, .accepted { color:var(--good) }
.moved, .suspect, .unstable, .undecided, .unbaselined, .not-measured, .not-applicable { color:var(--warn);
  border-style:dashed }
.regressed, .broken, .invalid { color:var(--bad); border-width:2px }
pre { background:var(--tint); border:1px solid var(--line); border-radius:6px; padding:.8rem;
  overflow-x:auto; white-space:pre-wrap; overflow-wrap:anywhere; font-size:.88rem }
figure { margin:1rem 0; overflow-x:auto } figure svg { max-width:100%; height:auto; color:var(--ink) }
details > summary { cursor:pointer; color:var(--link); margin:.4rem 0 }
@media print { nav { display:none } .table { overflow:visible } }
"""
