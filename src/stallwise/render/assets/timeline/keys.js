// Everything that the pointer does, by key.
const closer = () => { if (state.selected >= 0) reveal(state.selected, true); };
const keys = {
  ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), a: () => pan(-0.15), d: () => pan(0.15),
  "+": () => zoom(0.7), "=": () => zoom(0.7), w: () => zoom(0.7), "-": () => zoom(1 / 0.7), s: () => zoom(1 / 0.7),
  ArrowUp: () => goToTrack(-1), ArrowDown: () => goToTrack(1), ",": () => goToNeighbour(-1), ".": () => goToNeighbour(1),
  Enter: closer, f: closer, 0: fit, Home: fit, Escape: letGo, "/": () => $("tl-search").focus(),
};
app.addEventListener("keydown", (e) => {
  const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  act();
});
$("tl-search").addEventListener("keydown", (e) => {
  if (e.key === "Enter") { e.preventDefault(); goToHit(e.shiftKey ? -1 : 1); }
  if (e.key === "Escape") { letGo(); app.focus(); }
});
