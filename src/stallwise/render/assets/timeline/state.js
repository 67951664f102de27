// What the timeline shows just now: the one thing that its parts share.
const $ = (id) => document.getElementById(id);
const given = JSON.parse($("tl-data").textContent);
const app = $("tl"), canvas = app.querySelector("canvas"), ink = canvas.getContext("2d", { alpha: false });
const state = {
  scene: null,       // the step that is drawn above
  version: 0,        // in which of its tellings: as recorded, clean, fixed
  beside: -1,        // the telling drawn below, -1 for none
  other: null,       // the step it is of, where that is another one
  view: [0, 1],      // nanoseconds from the step's begin: the part that is seen
  lines: [],         // tracks as they are laid out, from top to bottom
  width: 0, height: 0, gutter: 0, ratio: 1, // pixels; read once a layout, since asking the page costs a frame
  folded: {},        // tracks that somebody opened or shut
  selected: -1,      // row of the chosen event
  lit: new Set(),    // rows that prove a finding
  hits: [], hitSet: new Set(), hitAt: -1, // rows that a search found
  showPath: false,
  range: null,       // what somebody marked, from and to
  finding: -1,       // whose places are lit
  trail: [],         // where one has leapt to
  pinned: [],        // tracks that stand first
};

// What is drawn below: the same step in other times, or the step of another rank.
const below = () => state.other || state.scene;
const length = () => Math.max(state.scene.versions[state.version].length, state.beside >= 0 ? below().versions[state.beside].length : 0);
// The host's part of a step may begin before the device's.
const least = () => Math.min(state.scene.begin, 0);
const isUpper = (line) => line.from === state.scene && line.v === state.version;
const lineOf = (i) => state.lines.find((line) => isUpper(line) && line.track === state.scene.c.track[i]);
const foldKey = (line) => line.from.number + ":" + line.track;

const plotWidth = () => state.width - state.gutter;
const xOf = (t) => state.gutter + (t - state.view[0]) / (state.view[1] - state.view[0]) * plotWidth();
const tOf = (x) => state.view[0] + (x - state.gutter) / plotWidth() * (state.view[1] - state.view[0]);
