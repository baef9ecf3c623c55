"""The page's style sheet: both themes, phone and print."""

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2430; --soft: #5b6472;
  --line: #dde1e7; --wash: #f4f6f9; --accent: #0b5fa5; --warn: #8a5a00; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #161b22;
  --ink: #e4e8ef; --soft: #9aa4b2; --line: #323b47; --wash: #1e252e; --accent: #6cb6ff;
  --warn: #e3b341; }
  /* Lightness is turned over, hues stay; what was white lets the page through. */
  .scroll img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1.25rem 4rem;
  color: var(--ink); background: var(--paper);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .35rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
p.lead { color: var(--soft); margin: 0 0 1.25rem; }
a { color: var(--accent); }
nav ul { display: flex; flex-wrap: wrap; gap: .35rem 1.1rem; list-style: none;
  margin: 0 0 1.5rem; padding: 0; }
.cards { display: grid; gap: .8rem; margin: 0 0 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); }
.card { background: var(--wash); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1rem; }
.card h3 { font-size: .95rem; margin: 0 0 .35rem; }
.card dl { display: grid; grid-template-columns: auto 1fr; gap: .1rem .8rem;
  margin: 0; }
.card dt { color: var(--soft); }
.card dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.notes { border-left: 3px solid var(--warn); background: var(--wash);
  border-radius: 0 .4rem .4rem 0; padding: .6rem 1rem; margin: 1rem 0; }
.notes ul { margin: .3rem 0 0; padding-left: 1.1rem; }
.notes li { overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; }
figure { margin: 1.5rem 0; }
figcaption, caption, .foot { color: var(--soft); font-size: .88rem; }
figcaption { margin-top: .3rem; }
.scroll { overflow-x: auto; -webkit-overflow-scrolling: touch; }
.scroll img { display: block; width: calc(100% * var(--share)); height: auto;
  margin: 0 auto; border-radius: .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .85rem;
  font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; padding-bottom: .4rem; }
th, td { padding: .38rem .55rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 2px solid var(--line); }
th:first-child, td:first-child, table.text th, table.text td { text-align: left; }
tr.quoted td { color: var(--soft); font-style: italic; }
.foot { margin: .4rem 0 0; padding-left: 1.1rem; }
.glossary { display: grid; grid-template-columns: minmax(8rem, auto) 1fr;
  gap: .35rem 1.2rem; }
.glossary dt { font-weight: 600; } .glossary dd { margin: 0; }
@media (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; } h1 { font-size: 1.4rem; }
  .scroll img { width: calc(46rem * var(--share)); margin: 0; }
  .glossary { grid-template-columns: 1fr; gap: .1rem; }
  .glossary dd { margin-bottom: .5rem; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --wash: #fff;
    --accent: #000; --warn: #777; color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  figure, tr, .card { break-inside: avoid; } h2 { break-after: avoid; }
  .scroll { overflow: visible; }
  .scroll img { width: calc(100% * var(--share)); filter: none;
    mix-blend-mode: normal; }
  table { font-size: 7.5pt; } th, td { padding: .2rem .3rem; white-space: normal; }
  details::details-content { content-visibility: visible; }
}
"""
