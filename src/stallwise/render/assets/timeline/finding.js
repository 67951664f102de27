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

function jump(finding) {
  const [number, rows] = told.proofs[finding];
  if (state.version !== 0 || number !== state.scene.number) { $("tl-scene").value = number; show(number, 0); }
  state.lit = new Set(rows);
  goTo(rows[0]);
  $("timeline").scrollIntoView({ block: "start" });
  app.focus({ preventScroll: true });
}

function letGo() {
  state.lit = new Set();
  state.hits = [];
  state.hitSet = new Set();
  $("tl-search").value = $("tl-hits").textContent = "";
  choose(-1);
}
