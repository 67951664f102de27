// The boxes of a track. Of what falls on one pixel only the first is drawn, and neighbours of one colour become one box; edges
// lie on whole pixels and colours are mixed beforehand, so nothing is blended while the view moves.
const NAMED_PX = 30, LETTER_PX = 6.1, SPLIT_PX = 3, SHADED_PX = 2;
const run = { fill: "", x: 0, y: 0, wide: 0, tall: 0 }; // what is to be filled next

function fillBox(fill, x, y, wide, tall) {
  if (fill === run.fill && y === run.y && tall === run.tall && x === run.x + run.wide) { run.wide += wide; return; }
  endRun();
  if (fill !== run.fill) ink.fillStyle = run.fill = fill;
  run.x = x; run.y = y; run.wide = wide; run.tall = tall;
}

function endRun() {
  if (run.wide > 0) ink.fillRect(run.x, run.y, run.wide, run.tall);
  run.wide = 0;
}

function drawBoxes(line) {
  const { from, v } = line, { c } = from, s = from.starts[v], e = from.ends[v], [t0, t1] = state.view, upper = isUpper(line);
  const scale = plotWidth() / (t1 - t0), tall = line.each - 1, shaded = line.kind !== "accounts", names = new Map(), marked = [];
  const dim = state.lit.size > 0 || state.hitSet.size > 0;
  run.fill = ""; // others have painted since
  for (let depth = 0; depth < line.shown; depth++) {
    const rows = from.levels[line.track][v][depth], y = line.y + depth * line.each;
    let reach = state.gutter;
    for (let k = firstAfter(rows, e, t0); k < rows.length && s[rows[k]] < t1; k++) {
      const i = rows[k], shines = upper && (i === state.selected || (dim && (state.lit.has(i) || state.hitSet.has(i))));
      const x1 = Math.min(Math.round(state.gutter + (e[i] - t0) * scale), state.width);
      if (x1 <= reach && k && !shines) continue; // hidden behind its neighbour's pixel
      const x0 = Math.max(Math.round(state.gutter + (s[i] - t0) * scale), Math.min(reach, x1 - 1)), wide = Math.max(x1 - x0, 1);
      reach = x0 + wide;
      if (wide <= SHADED_PX) {
        const colour = plainColour(i, line.kind, from);
        fillBox(dim && !shines ? colour.pale : colour.plain, x0, y, wide, tall);
      } else {
        const colour = line.kind === "python" && from.library.has(c.name[i]) ? colours.library : colourOf(i, line.kind, from), seen = shaded && wide > SPLIT_PX ? wide - 1 : wide;
        fillBox(dim && !shines ? colour.pale : shaded ? colour.by[c.name[i] % SHADES] : colour.plain, x0, y, seen, tall);
        if (c.count[i] > 1) fillBox(colours.back, x0, y + (tall >> 1), seen, 1); // a block of many
        if (c.idle[i] > 0 && c.account[i] >= 0) fillBox(colours.accounts[c.account[i]].plain, x0, y + tall - 3, seen, 3);
        if (wide > NAMED_PX && (shines || !dim)) {
          if (!names.has(colour.on)) names.set(colour.on, []);
          names.get(colour.on).push([i, x0 + 3, y + (tall >> 1), Math.floor((wide - 6) / LETTER_PX)]);
        }
      }
      if (shines) marked.push([x0, y, wide, tall, markOf(i)]);
    }
  }
  endRun();
  for (const mark of marked) drawFrame(...mark);
  drawNames(line, names);
}

function drawNames(line, names) {
  ink.textAlign = "left";
  for (const [shade, texts] of names) {
    ink.fillStyle = shade;
    for (const [i, x, y, letters] of texts) ink.fillText(short(nameIn(i, line), letters), x, y);
  }
}

function nameIn(i, { from, kind, v }) {
  const more = from.c.count[i] > 1 ? ` +${from.c.count[i] - 1}` : "";
  return from.names[from.c.name[i]] + more + (kind === "accounts" ? ` ${lasts(from, v, i)}` : "");
}

const markOf = (i) => i === state.selected ? colours.text : state.lit.has(i) ? colours.hot : colours.found;

function drawFrame(x, y, wide, tall, shade) {
  ink.strokeStyle = shade;
  ink.lineWidth = 2;
  ink.strokeRect(x, y + 0.5, Math.max(wide, 2), tall - 1);
}
