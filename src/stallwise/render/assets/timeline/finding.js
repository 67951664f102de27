// Ways to events: by name, and from a finding to what proves it.
function search(text) {
  const { scene, version } = state, wanted = text.trim().toLowerCase();
  const names = new Set(wanted ? scene.names.flatMap((name, k) => name.toLowerCase().includes(wanted) ? [k] : []) : []);
  state.hits = [];
  for (let i = 0; i < scene.rows && names.size; i++) {
    if (names.has(scene.c.name[i]) && (scene.c.version[i] === -1 || scene.c.version[i] === version)) state.hits.push(i);
  }
  state.hits.sort((a, b) => scene.starts[version][a] - scene.starts[version][b]);
  state.hitSet = new Set(state.hits);
  state.hitAt = -1;
  $("tl-hits").textContent = wanted ? `${state.hits.length} found` : "";
  paint();
}

function goToHit(by) {
  const { hits } = state;
  if (!hits.length) return;
  state.hitAt = (state.hitAt + by + hits.length) % hits.length;
  $("tl-hits").textContent = `${state.hitAt + 1} of ${hits.length}`;
  goTo(hits[state.hitAt]);
}

// The places of a finding are lit and brought into sight; another number lets go of them.
function showFinding(finding) {
  if (!(finding in given.proofs)) return state.finding >= 0 ? letGo() : undefined;
  const [number, rows] = given.proofs[finding];
  if (state.version !== 0 || number !== state.scene.number) { $("tl-scene").value = number; show(number, 0); }
  state.finding = finding;
  state.lit = new Set(rows);
  state.place = 0;
  choose(rows[0]);
  unfold(rows[0]);
  go(...hull([rows[0], ...placesOf(finding)]), given.findings[finding]);
}

function goToPlace(by) {
  if (state.finding < 0) return;
  const rows = given.proofs[state.finding][1];
  state.place = (state.place + by + rows.length) % rows.length;
  goTo(rows[state.place]);
}

// The other way round: what cites an event of this step.
const citing = (i) => Object.keys(given.proofs).filter((finding) => given.proofs[finding][0] === state.scene.number && given.proofs[finding][1].includes(i));

function letGo() {
  state.finding = -1;
  state.lit = new Set();
  if (state.range) setRange(null);
  state.hits = [];
  state.hitSet = new Set();
  $("tl-search").value = $("tl-hits").textContent = "";
  choose(-1);
}
