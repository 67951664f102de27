// The whole step in small, with the part that is seen. Only the frame moves, so the boxes are drawn once.
let overview = null;

const xOfWhole = (t) => (t - least()) / (length() - least()) * plotWidth();

function drawOverview() {
  const { scene, version, ratio } = state;
  overview = document.createElement("canvas");
  overview.width = Math.max(1, Math.round(plotWidth() * ratio));
  overview.height = Math.round((OVERVIEW - 3) * ratio);
  const on = overview.getContext("2d");
  on.scale(ratio, ratio);
  on.fillStyle = colours.lane;
  on.fillRect(0, 0, plotWidth(), OVERVIEW);
  for (const i of scene.levels[0][version][0] || []) {
    const x0 = xOfWhole(scene.starts[version][i]);
    on.fillStyle = colourOf(i, "accounts", scene).plain;
    on.fillRect(x0, 0, xOfWhole(scene.ends[version][i]) - x0 + 0.3, OVERVIEW);
  }
}

function drawSeenPart() {
  const { gutter, width, view } = state, tall = OVERVIEW - 3;
  ink.drawImage(overview, gutter, 0, plotWidth(), tall);
  const from = Math.max(gutter + xOfWhole(view[0]), gutter), to = Math.min(gutter + xOfWhole(view[1]), width);
  ink.fillStyle = colours.back;
  ink.globalAlpha = 0.72;
  ink.fillRect(gutter, 0, from - gutter, tall);
  ink.fillRect(to, 0, width - to, tall);
  ink.globalAlpha = 1;
  ink.strokeStyle = colours.text;
  ink.lineWidth = 1.5;
  ink.strokeRect(from + 0.75, 0.75, Math.max(to - from - 1.5, 3), tall - 1.5);
}

function lookFromOverview(x) {
  const middle = least() + (x - state.gutter) / plotWidth() * (length() - least()), half = (state.view[1] - state.view[0]) / 2;
  look(middle - half, middle + half);
}
