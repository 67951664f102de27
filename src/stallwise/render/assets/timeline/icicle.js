// Host time by caller, callers on top: in the marked stretch, or else in the whole step. What libraries do is pale.
const ICICLE_ROW = 18, MOST_LEVELS = 16, LEAST_PART = 0.004, SVG = "http://www.w3.org/2000/svg";

function callTree(from, v, a, b) {
  const top = { name: "", ns: 0, inner: new Map() }, { c } = from, s = from.starts[v], e = from.ends[v];
  const kinds = from.tracks.some(([kind], track) => kind === "python" && from.levels[track][v].length) ? ["python"] : ["thread"];
  from.tracks.forEach(([kind, label], track) => {
    if (!kinds.includes(kind) || !from.levels[track][v].length) return;
    const rows = from.levels[track][v].flatMap((level) => [...level]).sort((p, q) => s[p] - s[q] || c.depth[p] - c.depth[q]);
    const path = [childOf(top, label, 0, false)];
    for (const i of rows) {
      const ns = Math.min(e[i], b) - Math.max(s[i], a);
      if (ns <= 0) continue;
      const above = path[Math.min(c.depth[i], path.length - 1)];
      path.length = Math.min(c.depth[i], path.length - 1) + 1;
      path.push(childOf(above, from.names[c.name[i]], ns, from.library.has(c.name[i])));
      if (path.length === 2) { path[0].ns += ns; top.ns += ns; }
    }
  });
  return top;
}

function childOf(above, name, ns, library) {
  if (!above.inner.has(name)) above.inner.set(name, { name, ns: 0, library, inner: new Map() });
  const found = above.inner.get(name);
  found.ns += ns;
  return found;
}

function tellIcicle() {
  const [a, b] = state.range || [least(), state.scene.versions[state.version].length], top = callTree(state.scene, state.version, a, b), box = $("tl-icicle");
  box.hidden = !top.ns;
  if (!top.ns) return;
  const parts = [], wide = Math.max(app.clientWidth, 300);
  let deep = 0;
  const lay = (found, x, level) => {
    for (const one of [...found.inner.values()].sort((p, q) => q.ns - p.ns)) {
      const share = one.ns / top.ns;
      if (share >= LEAST_PART && level < MOST_LEVELS) { parts.push([one, x * wide, share * wide, level]); deep = Math.max(deep, level + 1); lay(one, x, level + 1); }
      x += share;
    }
  };
  lay(top, 0, 0);
  const picture = drawn("svg", { viewBox: `0 0 ${wide} ${deep * ICICLE_ROW}`, role: "img", "aria-label": `Host time by caller: ${parts.slice(0, 6).map(([one]) => `${one.name} ${seconds(one.ns)}`).join(", ")}` });
  for (const [one, x, w, level] of parts) {
    const box = drawn("rect", { x, y: level * ICICLE_ROW, width: Math.max(w - 1, 0.5), height: ICICLE_ROW - 1, class: one.library ? "library" : level ? "frame-own" : "frame-top" });
    box.append(drawn("title", {}, `${one.name}: ${seconds(one.ns)}, ${(100 * one.ns / top.ns).toFixed(0)}%`));
    picture.append(box);
    if (w > 40) picture.append(drawn("text", { x: x + 4, y: level * ICICLE_ROW + 12.5, class: "axis" }, short(one.name, Math.floor((w - 8) / LETTER_PX))));
  }
  const threads = top.inner.size > 1 ? ` in ${top.inner.size} threads` : "";
  box.querySelector("h3").textContent = `Host time by caller, ${state.range ? "marked stretch" : "whole step"}: ${seconds(top.ns)}${threads}`;
  box.querySelector("div").replaceChildren(picture);
}

function drawn(tag, settings, text) {
  const found = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(settings)) found.setAttribute(key, value);
  if (text !== undefined) found.textContent = text;
  return found;
}
