// Mouse, pen and fingers.
const DRAG_PX = 3, NEAR_PX = 2;
const hover = app.querySelector(".tl-hover"), down = new Map();
let moved = 0, pinched = false;

const inside = (e) => { const box = app.getBoundingClientRect(); return [e.clientX - box.left - app.clientLeft, e.clientY - box.top - app.clientTop]; };

// The box at a point, and the track it is on.
function at(x, y) {
  const line = state.lines.find((l) => l.kind !== "title" && y >= l.y && y < l.y + l.height);
  if (!line || x < state.gutter) return [-1, line];
  const rows = line.from.levels[line.track][line.v][Math.floor((y - line.y) / line.each)] || [];
  const slack = NEAR_PX / plotWidth() * (state.view[1] - state.view[0]), t = tOf(x), s = line.from.starts[line.v], e = line.from.ends[line.v];
  let best = -1, near = slack;
  for (let k = Math.max(firstAfter(rows, e, t) - 1, 0); k < rows.length && s[rows[k]] <= t + slack; k++) {
    const away = Math.max(s[rows[k]] - t, t - e[rows[k]], 0);
    if (away <= near) { best = rows[k]; near = away; if (!away) break; }
  }
  return [best, line];
}

function labelAt(x, y) {
  const on = (l) => state.gutter ? x < state.gutter && y >= l.y && y < l.y + l.height : y >= l.y - l.strip && y < l.y;
  return state.lines.find((l) => l.deep > 1 && on(l));
}

function press(e) {
  const [x, y] = inside(e);
  const marks = (e.shiftKey || (y >= OVERVIEW && y < OVERVIEW + RULER)) && x >= state.gutter;
  down.set(e.pointerId, { x, y, overview: y < OVERVIEW, edge: marks ? heldEdge(x) ?? tOf(x) : null });
  app.setPointerCapture(e.pointerId);
  moved = 0;
  pinched = false;
  hover.hidden = true;
  if (y < OVERVIEW) lookFromOverview(x);
}

function move(e) {
  const [x, y] = inside(e), was = down.get(e.pointerId);
  if (!was) return e.pointerType === "mouse" ? point(x, y) : undefined;
  if (was.overview) return lookFromOverview(x);
  if (was.edge !== null) { moved += Math.abs(x - was.x); was.x = x; if (moved > DRAG_PX) setRange(was.edge, tOf(Math.max(x, state.gutter))); return; }
  const others = [...down].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
  if (others.length) {
    const apart = Math.abs(x - others[0].x), before = Math.abs(was.x - others[0].x);
    if (apart > 4 && before > 4) zoom(before / apart, (x + others[0].x) / 2);
    pinched = true;
  } else {
    moved += Math.abs(x - was.x) + Math.abs(y - was.y);
    if (moved > DRAG_PX) { app.classList.add("drags"); pan((was.x - x) / plotWidth()); }
  }
  down.set(e.pointerId, { ...was, x, y });
}

function release(e) {
  const was = down.get(e.pointerId);
  down.delete(e.pointerId);
  app.classList.remove("drags");
  if (!was || was.overview || moved > DRAG_PX || pinched || e.type === "pointercancel") return;
  const [x, y] = inside(e), [i, line] = at(x, y), label = labelAt(x, y);
  if (label) {
    state.folded[foldKey(label)] = !label.shut;
    layOut();
  } else if (i >= 0) choose(i, line.v, line.from); else letGo();
}

function turn(e) {
  const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
  if (!sideways && !e.ctrlKey && !e.metaKey && document.activeElement !== app) return; // the page scrolls until the timeline is meant
  e.preventDefault();
  const by = (sideways ? e.deltaX || e.deltaY : e.deltaY) * (e.deltaMode ? 16 : 1);
  if (sideways) pan(by / plotWidth()); else zoom(Math.exp(Math.max(-240, Math.min(240, by)) * 0.0025), inside(e)[0]);
}

function point(x, y) {
  const [i, line] = at(x, y);
  hover.hidden = i < 0;
  if (i < 0) return;
  const { c, names } = line.from, many = c.count[i] > 1 ? ` and ${c.count[i] - 1} more` : "";
  hover.textContent = `${names[c.name[i]]}${many}: ${lasts(line.from, line.v, i)}`;
  hover.style.left = Math.max(4, Math.min(x + 14, state.width - hover.offsetWidth - 8)) + "px";
  hover.style.top = (y + 30 + hover.offsetHeight > state.height ? y - hover.offsetHeight - 12 : y + 18) + "px";
}

app.addEventListener("pointerdown", press);
app.addEventListener("pointermove", move);
app.addEventListener("pointerup", release);
app.addEventListener("pointercancel", release);
app.addEventListener("pointerleave", () => { hover.hidden = true; });
app.addEventListener("dblclick", (e) => { const [i, line] = at(...inside(e)); if (i >= 0 && isUpper(line)) reveal(i, true); });
app.addEventListener("wheel", turn, { passive: false });
