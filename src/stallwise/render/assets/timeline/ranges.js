// A stretch of time that somebody marks: what it holds by category and by kernel, how long the device idled in it, and what called what.
const EDGE_PX = 6, MOST_SUMS = 8;

function setRange(a, b) {
  state.range = a === null ? null : [Math.min(a, b), Math.max(a, b)];
  app.dataset.range = state.range ? state.range.map(Math.round).join(" ") : "";
  tellRange();
  paint();
}

// Of the chosen event; without one, of all that is seen.
function rangeHere() {
  const { scene, version, selected } = state;
  if (selected >= 0) setRange(scene.starts[version][selected], scene.ends[version][selected]);
  else setRange(Math.max(state.view[0], least()), Math.min(state.view[1], length()));
}

// The end that stays where it is when the other one is dragged from here.
function heldEdge(x) {
  if (!state.range) return null;
  const near = state.range.findIndex((t) => Math.abs(xOf(t) - x) <= EDGE_PX);
  return near < 0 ? null : state.range[1 - near];
}

function sumsOf(from, v, a, b) {
  const { c, names } = from, s = from.starts[v], e = from.ends[v], found = { categories: new Map(), kernels: new Map(), launches: 0, idle: 0 };
  const add = (map, key, ns, count) => { const sum = map.get(key) || [0, 0]; map.set(key, [sum[0] + ns, sum[1] + count]); };
  const busy = [];
  from.tracks.forEach(([kind], track) => (from.levels[track][v] || []).forEach((rows) => {
    for (let k = firstAfter(rows, e, a); k < rows.length && s[rows[k]] < b; k++) {
      const i = rows[k], seen = Math.min(e[i], b) - Math.max(s[i], a), part = e[i] > s[i] ? seen / (e[i] - s[i]) : 1;
      if (kind === "accounts") add(found.categories, from.accounts[c.account[i]], seen, 1);
      if (kind === "stream") { add(found.kernels, names[c.name[i]], part * (c.length[i] + c.more[i]), c.count[i]); busy.push([Math.max(s[i], a), Math.min(e[i], b)]); }
      if (kind === "thread" && c.correlation[i] > 0) found.launches += c.count[i];
    }
  }));
  let at = a;
  for (const [start, end] of busy.sort((p, q) => p[0] - q[0])) { found.idle += Math.max(0, start - at); at = Math.max(at, end); }
  found.idle += b - at;
  return found;
}

function tellRange() {
  const box = $("tl-range"), range = state.range;
  box.hidden = !range;
  tellIcicle();
  if (!range) return;
  const [a, b] = range, upper = sumsOf(state.scene, state.version, a, b), lower = state.beside >= 0 ? sumsOf(below(), state.beside, a, b) : null;
  const idle = (sums) => `the device idles ${seconds(sums.idle)} of it, ${sums.launches} launches`;
  box.replaceChildren(
    node("h3", `${seconds(b - a)}, from ${seconds(a)} to ${seconds(b)}`),
    node("p", idle(upper) + (lower ? `; below: ${idle(lower)}` : "")),
    node("div", [sumTable("category", upper.categories, lower && lower.categories, b - a), sumTable("on the device", upper.kernels, lower && lower.kernels, b - a)], "tl-sums"),
    node("p", [pressable("zoom to it", () => go(a, b)), pressable("clear", () => setRange(null))], "tl-buttons"),
  );
}

function sumTable(title, upper, lower, whole) {
  const names = [...new Set([...upper.keys(), ...(lower ? lower.keys() : [])])], of = (map, name) => (map.get(name) || [0])[0];
  const weight = (name) => Math.max(of(upper, name), lower ? of(lower, name) : 0);
  names.sort((p, q) => weight(q) - weight(p));
  const cells = (name) => {
    const here = of(upper, name), part = (100 * here / whole).toFixed(0) + "%";
    if (!lower) return [seconds(here), part];
    const more = of(lower, name) - here;
    return [seconds(here), seconds(of(lower, name)), [Math.abs(more) < 1 ? "" : (more > 0 ? "+" : "-") + seconds(Math.abs(more)), more > 0 ? "more" : "less"]];
  };
  const row = (name) => node("tr", [Object.assign(node("td", name), { title: name }), ...cells(name).map((cell) => Array.isArray(cell) ? node("td", cell[0], "n " + cell[1]) : node("td", cell, "n"))]);
  const heads = [title, ...(lower ? ["above", "below", "difference"] : ["time", "share"])].map((word, k) => Object.assign(node("th", word, k ? "n" : ""), { scope: "col" }));
  const left = names.length - MOST_SUMS;
  return node("div", [
    node("table", [node("thead", [node("tr", heads)]), node("tbody", names.slice(0, MOST_SUMS).map(row))]),
    ...(left > 0 ? [node("p", `and ${left} more`, "soft")] : []),
  ]);
}

function node(tag, inner, kind) {
  const found = document.createElement(tag);
  if (kind) found.className = kind;
  found.append(...(Array.isArray(inner) ? inner : [inner]));
  return found;
}

function pressable(word, act) {
  const button = node("button", word);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

function drawRange() {
  if (!state.range) return;
  const [x0, x1] = state.range.map(xOf);
  ink.fillStyle = colours.accent;
  ink.globalAlpha = 0.13;
  ink.fillRect(x0, OVERVIEW, x1 - x0, state.height);
  ink.globalAlpha = 1;
  ink.fillRect(x0 - 1, OVERVIEW, 2, state.height);
  ink.fillRect(x1 - 1, OVERVIEW, 2, state.height);
}

// What a finding rests on: a band over all tracks, from its first place to its last, with its name and the time of its category.
function drawFinding() {
  if (state.finding < 0 || !state.lit.size) return;
  const rows = placesOf(state.finding), [a, b] = hull(rows), x0 = Math.max(xOf(a), state.gutter), x1 = Math.min(xOf(b), state.width);
  if (x1 <= x0) return;
  ink.fillStyle = ink.strokeStyle = colours.hot;
  ink.lineWidth = 1;
  ink.globalAlpha = 0.16;
  ink.beginPath();
  for (let x = x0 - state.height; x < x1; x += 9) { ink.moveTo(Math.max(x, x0), OVERVIEW + RULER + Math.max(0, x0 - x)); ink.lineTo(Math.min(x + state.height, x1), OVERVIEW + RULER + Math.min(state.height, x1 - x)); }
  ink.stroke();
  ink.globalAlpha = 1;
  ink.fillRect(x0, OVERVIEW + RULER - 3, x1 - x0, 3);
  const { starts, ends } = state.scene, v = state.version, ns = rows.reduce((sum, i) => sum + ends[v][i] - starts[v][i], 0);
  const label = given.findings[state.finding] + (onLedger(rows[0]) ? `: ${seconds(ns)}` : ""), wide = ink.measureText(label).width + 10;
  ink.fillStyle = colours.back;
  ink.fillRect(x0, OVERVIEW + 3, wide, RULER - 6);
  ink.fillStyle = colours.hot;
  ink.textAlign = "left";
  ink.fillText(label, x0 + 4, OVERVIEW + RULER / 2 - 1);
}

const onLedger = (i) => state.scene.c.track[i] === 0;

// Its places on the track of categories, where it has some; else all of them.
function placesOf(finding) {
  const rows = given.proofs[finding][1], on = rows.filter(onLedger);
  return on.length ? on : rows;
}

function hull(rows) {
  const { starts, ends } = state.scene, v = state.version;
  return [Math.min(...rows.map((i) => starts[v][i])), Math.max(...rows.map((i) => ends[v][i]))];
}
