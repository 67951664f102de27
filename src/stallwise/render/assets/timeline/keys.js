// Everything that the pointer does, by key.
const closer = () => { if (state.selected >= 0) reveal(state.selected, true); };
// Whether the chosen event fills the view already.
const around = () => state.selected < 0 || (state.view[1] - state.view[0]) < 2.5 * (state.scene.ends[state.version][state.selected] - state.scene.starts[state.version][state.selected]);
// The end of the marked stretch, by keys.
function stretch(by) {
  if (!state.range) rangeHere();
  setRange(state.range[0], Math.max(state.range[1] + by * (state.view[1] - state.view[0]) / 50, state.range[0] + LEAST_NS));
}
const keys = {
  ArrowLeft: (e) => e.shiftKey ? stretch(-1) : pan(-0.15), ArrowRight: (e) => e.shiftKey ? stretch(1) : pan(0.15), a: () => pan(-0.15), d: () => pan(0.15),
  "+": () => zoom(0.7), "=": () => zoom(0.7), w: () => zoom(0.7), "-": () => zoom(1 / 0.7), s: () => zoom(1 / 0.7),
  ArrowUp: () => goToTrack(-1), ArrowDown: () => goToTrack(1), ",": () => goToNeighbour(-1), ".": () => goToNeighbour(1),
  Enter: closer, f: () => around() ? fit() : closer(), r: rangeHere, z: () => state.range && go(...state.range), p: pin, "[": () => goToPlace(-1), "]": () => goToPlace(1),
  Backspace: back, "?": () => $("tl-sheet").showModal(), 0: fit, Home: fit, Escape: letGo, "/": () => $("tl-search").focus(),
};
app.addEventListener("keydown", (e) => {
  const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  act(e);
});
$("tl-search").addEventListener("keydown", (e) => {
  if (e.key === "Enter") { e.preventDefault(); goToHit(e.shiftKey ? -1 : 1); }
  if (e.key === "Escape") { letGo(); app.focus(); }
});
