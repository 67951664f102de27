// The facts of a chosen event, and the way from it to its neighbours.
function choose(i, v = state.version, from = state.scene) {
  state.selected = from === state.scene ? i : -1;
  app.dataset.selected = i < 0 ? "" : from.names[from.c.name[i]];
  $("tl-facts").hidden = i < 0;
  if (i >= 0) tellFacts(from.names[from.c.name[i]], factsOf(i, v, from), from === state.scene ? citing(i) : []);
  paint();
}

function factsOf(i, v, from) {
  const { c } = from, [kind, track] = from.tracks[c.track[i]];
  const facts = [["lasts", lasts(from, v, i)], ["begins", `${seconds(from.starts[v][i])} into the step`], [kind === "accounts" ? "track" : kind, track]];
  if (c.count[i] > 1) facts.push(["block", `${c.count[i]} events, ${seconds(c.length[i] + c.more[i])} in all; the name is that of the longest`]);
  if (c.account[i] >= 0) facts.push(["category", from.accounts[c.account[i]]]);
  if (c.work[i] >= 0) facts.push(["kind of work", from.works[c.work[i]]]);
  if (c.idle[i] > 0) facts.push(["device idle in it", seconds(c.idle[i])]);
  if (c.operator[i] >= 0) facts.push(["operator", from.names[c.operator[i]]]);
  if (c.correlation[i] > 0) facts.push(["correlation", String(c.correlation[i])]);
  from.versions.forEach((other, w) => {
    if (w !== v && c.version[i] === -1) facts.push([other.word, `${lasts(from, w, i)} at ${seconds(from.starts[w][i])}`]);
  });
  for (const text of c.facts[i] >= 0 ? from.facts[c.facts[i]] : []) facts.push(text.split(/: (.*)/s).slice(0, 2));
  return facts;
}

function tellFacts(name, facts, findings) {
  const title = document.createElement("h3"), list = document.createElement("dl");
  title.textContent = name;
  for (const [word, value] of facts) {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = word;
    dd.textContent = value;
    list.append(dt, dd);
  }
  const cites = findings.map((finding) => pressable(given.findings[finding], () => document.dispatchEvent(new CustomEvent("stallwise-open", { detail: finding }))));
  $("tl-facts").replaceChildren(title, list, ...(cites.length ? [node("p", ["Cited by ", ...cites], "tl-buttons")] : []));
}

function goTo(i) {
  choose(i);
  reveal(i);
}

function goToNeighbour(by) {
  const { scene, version, selected } = state;
  if (selected < 0) return;
  const rows = scene.levels[scene.c.track[selected]][version][scene.c.depth[selected]] || [], next = rows[rows.indexOf(selected) + by];
  if (next !== undefined) goTo(next);
}

function goToTrack(by) {
  const { scene, version, selected, view } = state, seen = state.lines.filter(isUpper);
  const from = selected < 0 ? -1 : seen.findIndex((line) => line.track === scene.c.track[selected]);
  const line = seen[Math.max(0, Math.min(seen.length - 1, from + by))], rows = line && scene.levels[line.track][version][0];
  if (!rows || !rows.length) return;
  const t = selected < 0 ? (view[0] + view[1]) / 2 : scene.starts[version][selected];
  goTo(rows[Math.min(firstAfter(rows, scene.ends[version], t), rows.length - 1)]);
}
