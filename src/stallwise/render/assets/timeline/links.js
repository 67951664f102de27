// What joins boxes: the critical path, and from a call to the work that it launched.
const WAITS = 2; // a link in which nothing runs

// The chain that made the step as long as it is: a line along each link, thin where nothing runs, and down where it changes
// the track.
function drawPath() {
  const { kind, start, end, track } = state.scene.path, on = new Map(state.lines.filter(isUpper).map((line) => [line.track, line]));
  const strong = new Path2D(), thin = new Path2D(), from = firstAfter(null, end, state.view[0]);
  let before = from, drawn = -1, last = null;
  while (before > 0 && !on.has(track[before])) before--;
  for (let k = before; k < start.length && start[k] <= state.view[1]; k++) {
    const line = on.get(track[k]), y = line ? line.y + line.each - 1.5 : last;
    if (k < from || y === null) { last = y; continue; }
    const x0 = Math.max(xOf(start[k]), state.gutter), x1 = Math.min(xOf(end[k]), state.width), turns = last !== null && last !== y;
    if (!turns && x1 - drawn < 0.5) continue;
    if (turns) { thin.moveTo(x0, last); thin.lineTo(x0, y); }
    const path = kind[k] === WAITS ? thin : strong;
    path.moveTo(x0, y);
    path.lineTo(Math.max(x1, x0 + 0.5), y);
    last = y;
    drawn = x1;
  }
  ink.strokeStyle = colours.path;
  ink.lineWidth = 1.2;
  ink.stroke(thin);
  ink.lineWidth = 3;
  ink.stroke(strong);
}

function drawArrows() {
  const { scene, selected } = state;
  if (selected < 0 || scene.c.correlation[selected] <= 0) return;
  const from = placeOf(selected);
  for (const twin of scene.twins.get(scene.c.correlation[selected]) || []) {
    const to = placeOf(twin);
    if (twin === selected || !from || !to) continue;
    const [a, b] = from.x0 <= to.x0 ? [from, to] : [to, from];
    ink.strokeStyle = ink.fillStyle = colours.accent;
    ink.lineWidth = 1.6;
    ink.beginPath();
    ink.moveTo(a.x1, a.y);
    ink.bezierCurveTo(a.x1 + 40, a.y, b.x0 - 40, b.y, b.x0, b.y);
    ink.stroke();
    ink.beginPath();
    ink.arc(b.x0, b.y, 3, 0, 7);
    ink.fill();
  }
}

function placeOf(i) {
  const { scene, version } = state, line = lineOf(i);
  if (!line) return null;
  const depth = Math.min(scene.c.depth[i], line.shown - 1);
  return { x0: xOf(scene.starts[version][i]), x1: xOf(scene.ends[version][i]), y: line.y + (depth + 0.5) * line.each };
}
