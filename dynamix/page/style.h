// The style of a report, apart from what it says.
#pragma once

namespace dynamix {

// The content-security policy makes the browser refuse anything from outside.
inline constexpr const char* kPageHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5f6c7b;--paper:#fbfbfa;--card:#fff;--line:#e3e6ea;--band:#f59e0b;--good:#047857;
--c0:#2563eb;--c1:#dc2626;--c2:#059669;--c3:#b45309;--c4:#7c3aed;--c5:#0891b2;--c6:#be185d;--c7:#57606a}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa5b1;--paper:#14171a;--card:#1c2126;--line:#323a42;--band:#fbbf24;--good:#34d399;
--c0:#60a5fa;--c1:#f87171;--c2:#34d399;--c3:#fbbf24;--c4:#a78bfa;--c5:#22d3ee;--c6:#f472b6;--c7:#9ca3af}}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;max-width:880px;margin:0 auto;padding:1.5rem 1rem 4rem;color:var(--ink);background:var(--paper)}
h1{font-size:1.5rem;line-height:1.25;margin:.2rem 0 .4rem}h2{font-size:1.2rem;margin:2.4rem 0 .6rem;padding-top:1rem;border-top:1px solid var(--line)}
p{margin:.4rem 0}.lead{color:var(--soft)}
figure{margin:1rem 0;padding:.8rem .9rem .6rem;background:var(--card);border:1px solid var(--line);border-radius:10px;break-inside:avoid}
figcaption{font-weight:600;margin-bottom:.3rem}
svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}svg .tick,svg .axis{fill:var(--soft)}svg .event{fill:var(--soft);font-size:11px}
.grid{stroke:var(--line)}.mark{stroke:var(--soft);stroke-dasharray:5 4}.band{fill:var(--band);opacity:.16}
.dot{fill:currentColor;fill-opacity:.65}.hollow{fill:none;stroke:currentColor;stroke-width:1.5}.interval{stroke:currentColor;stroke-width:3}.mean{fill:currentColor}
.line{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.3rem 0 0;font-size:.88rem}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;background:currentColor;margin-right:.4em;vertical-align:-.05em}
.scroll{overflow:auto;max-height:26rem;border:1px solid var(--line);border-radius:10px;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,td:first-child,td.text,th.text{text-align:left}
th{position:sticky;top:0;background:var(--card);color:var(--soft);font-weight:600}tr:last-child td{border-bottom:0}
.best{color:var(--good);font-weight:600}
pre{overflow-x:auto;font-size:12.5px;line-height:1.4}summary{cursor:pointer;color:var(--soft)}
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:.35rem .7rem;align-items:center;font-size:.9rem}
.bar{display:flex;height:1.15rem;border-radius:4px;overflow:hidden;background:var(--line)}.bar i{display:block;background:currentColor;print-color-adjust:exact;-webkit-print-color-adjust:exact}
td.why{color:var(--soft);white-space:normal;min-width:19rem}.why b{color:var(--ink);font-weight:500}
@media(max-width:600px){body{padding-top:.8rem}svg text{font-size:21px}svg .event{font-size:17px}svg .axis{display:none}svg .line{stroke-width:3}figure{padding:.6rem .5rem}h1{font-size:1.25rem}}
@media print{:root{--ink:#000;--soft:#444;--paper:#fff;--card:#fff;--line:#ccc}body{max-width:none;padding:0}.scroll{max-height:none;overflow:visible}th{position:static}h2{break-after:avoid}}
</style>
)";

}  // namespace dynamix
