// One picture: ruler, tracks, boxes, and what lies over them.
const PLAIN_FONT = "11px system-ui, sans-serif", STRONG_FONT = "600 12px system-ui, sans-serif";

function draw() {
  const { lines, width, height, gutter, ratio } = state;
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.fillStyle = colours.back;
  ink.fillRect(0, 0, width, height);
  ink.font = PLAIN_FONT;
  ink.textBaseline = "middle";
  drawRuler();
  for (const line of lines) if (line.kind === "title") drawTitle(line); else drawTrack(line);
  ink.save();
  ink.beginPath();
  ink.rect(gutter, OVERVIEW, width - gutter, height);
  ink.clip();
  for (const line of lines) if (line.kind !== "title") drawBoxes(line);
  drawBorder(xOf(state.scene.versions[state.version].length), colours.text);
  if (state.beside >= 0) drawBorder(xOf(below().versions[state.beside].length), colours.soft);
  drawBorder(xOf(0), colours.soft);
  if (state.showPath && state.scene.path && state.version === 0) drawPath();
  drawArrows();
  drawFinding();
  drawRange();
  ink.restore();
  drawSeenPart();
}

function drawRuler() {
  const [from, to] = state.view, rough = (to - from) / Math.max(2, plotWidth() / 110), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power * 10;
  ink.textAlign = "center";
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = Math.round(xOf(t));
    ink.fillStyle = colours.rule;
    ink.fillRect(x, OVERVIEW + RULER - 6, 1, state.height);
    ink.fillStyle = colours.soft;
    if (x > state.gutter + 20 && x < state.width - 24) ink.fillText(seconds(t, step), x, OVERVIEW + RULER / 2 - 2);
  }
}

function drawTitle(line) {
  ink.fillStyle = colours.rule;
  ink.fillRect(0, line.y + 1, state.width, 1);
  ink.fillStyle = colours.text;
  ink.textAlign = "left";
  ink.font = STRONG_FONT;
  ink.fillText(line.label, 8, line.y + 12);
  ink.font = PLAIN_FONT;
}

function drawTrack(line) {
  ink.fillStyle = colours.lane;
  ink.fillRect(state.gutter, line.y, plotWidth(), line.height);
  ink.fillStyle = colours.text;
  ink.textAlign = "left";
  const mark = (line.pinned ? "● " : "") + (line.deep > 1 ? (line.shut ? "▸ " : "▾ ") : ""), wide = state.gutter > 0;
  ink.fillText(short(mark + line.label, wide ? 23 : 50), 8, wide ? line.y + Math.min(line.height, ROW) / 2 : line.y - 7);
}

function drawBorder(x, shade) {
  if (x < state.gutter || x > state.width) return;
  ink.strokeStyle = shade;
  ink.setLineDash([4, 3]);
  ink.lineWidth = 1;
  ink.beginPath();
  ink.moveTo(Math.round(x) + 0.5, OVERVIEW + RULER - 4);
  ink.lineTo(Math.round(x) + 0.5, state.height);
  ink.stroke();
  ink.setLineDash([]);
}
