// Where each track lies, from top to bottom.
const RULER = 24, OVERVIEW = 16, LEVEL = 15, ROW = 20, GAP = 6, STRIP = 15, WIDE = 640, LABELS = 150;
const BESIDE_KINDS = ["accounts", "stream"];
const DEEP_KINDS = ["thread", "python", "ranges"];

function layOut() {
  if (!app.clientWidth) return; // in a tab that is not shown
  state.width = app.clientWidth;
  state.ratio = devicePixelRatio || 1;
  state.gutter = state.width >= WIDE ? LABELS : 0;
  state.lines = [];
  let y = addTracks(OVERVIEW + RULER, state.scene, state.version, null);
  if (state.beside >= 0) {
    const lower = below().versions[state.beside];
    const label = state.other ? `${state.other.label}, from its own begin` : `${lower.word}: ${seconds(lower.length)}`;
    state.lines.push({ kind: "title", label, y, height: 18, shown: 0 });
    y = addTracks(y + 22, below(), state.beside, state.other ? null : BESIDE_KINDS);
  }
  state.height = y;
  canvas.style.height = y + "px";
  canvas.width = Math.round(state.width * state.ratio);
  canvas.height = Math.round(y * state.ratio);
  drawOverview();
  paint();
}

function addTracks(y, from, v, kinds) {
  const strip = state.gutter ? 0 : STRIP; // on a narrow screen the label stands above its track
  const order = from.tracks.map((_, track) => track).sort((p, q) => isPinned(from, q) - isPinned(from, p) || p - q);
  order.forEach((track) => {
    const [kind, label] = from.tracks[track];
    const levels = from.levels[track][v];
    if (!levels.length || (kinds && !kinds.includes(kind))) return;
    const deep = DEEP_KINDS.includes(kind), line = { from, kind, label, track, v, y: y + strip, strip, deep: levels.length };
    line.pinned = isPinned(from, track);
    line.shut = state.folded[foldKey(line)] ?? (deep && state.lines.some((before) => before.kind === kind));
    line.each = deep ? LEVEL : ROW;
    line.shown = line.shut ? 1 : levels.length;
    line.height = line.shown * line.each;
    state.lines.push(line);
    y += strip + line.height + GAP;
  });
  return y;
}

const isPinned = (from, track) => state.pinned.includes(from.number + ":" + track);

function pin() {
  const line = state.selected >= 0 ? lineOf(state.selected) : null;
  if (!line) return;
  const key = foldKey(line);
  state.pinned = line.pinned ? state.pinned.filter((one) => one !== key) : [...state.pinned, key];
  layOut();
}

function unfold(i) {
  const line = lineOf(i);
  if (line && line.shut && state.scene.c.depth[i] > 0) { state.folded[foldKey(line)] = false; layOut(); }
}
