// Which part of the step is seen, and the frames in which that changes.
const LEAST_NS = 50, GLIDE_MS = 220, PAUSE_MS = 250, FRAMES_KEPT = 240;
const clock = { asked: 0, last: 0, gaps: [] };
let gliding = 0;

// However often something changes between two frames, it is drawn once.
function paint() {
  if (!clock.asked) clock.asked = requestAnimationFrame((now) => { clock.asked = 0; tick(now); draw(); });
}

// The frame clock: the time from frame to frame while something moves.
function tick(now) {
  const gap = now - clock.last;
  clock.last = now;
  if (gap >= PAUSE_MS) { clock.gaps = []; return; }
  clock.gaps.push(gap);
  if (clock.gaps.length > FRAMES_KEPT) clock.gaps.shift();
}

// Milliseconds from frame to frame, the middle one; asked for by whoever measures.
app.frameMs = () => [...clock.gaps].sort((a, b) => a - b)[clock.gaps.length >> 1];

function look(from, to) {
  const first = least(), most = length(), room = (most - first) * 0.05;
  const width = Math.min(Math.max(to - from, LEAST_NS), most - first + 2 * room);
  from = Math.max(first - room, Math.min(from, most + room - width));
  state.view = [from, from + width];
  app.dataset.from = Math.round(from);
  app.dataset.to = Math.round(from + width);
  paint();
}

function zoom(factor, x = state.gutter + plotWidth() / 2) {
  const t = tOf(x), [from, to] = state.view;
  look(t - (t - from) * factor, t + (to - t) * factor);
}

function pan(share) {
  const [from, to] = state.view;
  look(from + share * (to - from), to + share * (to - from));
}

const fit = () => look(0 - length() * 0.01, length() * 1.01);

function glide(from, to) {
  cancelAnimationFrame(gliding);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return look(from, to);
  const [a, b] = state.view, began = performance.now();
  const step = (now) => {
    const part = Math.min(Math.max((now - began) / GLIDE_MS, 0), 1), ease = 1 - (1 - part) ** 3;
    look(a + (from - a) * ease, b + (to - b) * ease);
    if (part < 1) gliding = requestAnimationFrame(step);
  };
  gliding = requestAnimationFrame(step);
}

// Brings a box into sight, wide enough to be seen.
function reveal(i, close) {
  const s = state.scene.starts[state.version][i], e = state.scene.ends[state.version][i], [from, to] = state.view;
  unfold(i);
  if (close) return go(s - (e - s) * 0.5, e + (e - s) * 0.5, short(state.scene.names[state.scene.c.name[i]], 24));
  if (s >= from && e <= to && (e - s) / (to - from) * plotWidth() > 6) return paint();
  const around = Math.min(Math.max((e - s) * 8, LEAST_NS * 10), to - from);
  glide((s + e - around) / 2, (s + e + around) / 2);
}
