// What stands above the picture: which step, in whose times, beside which other; and how it all begins.
function show(number, v) {
  state.scene = opened(number);
  state.version = v;
  const { scene, version } = state, words = scene.versions.map((one, w) => [w, `${one.word}: ${seconds(one.length)}`]);
  const others = words.filter(([w]) => w !== version), steps = given.scenes.flatMap((from, k) => k === number ? [] : [["step " + k, from.label]]);
  if (state.other || !others.some(([w]) => w === state.beside)) state.beside = -1;
  state.other = null;
  options($("tl-version"), words, version);
  options($("tl-beside"), [[-1, "nothing"], ...others, ...steps], state.beside);
  $("tl-version").parentNode.hidden = words.length < 2;
  $("tl-beside").parentNode.hidden = !others.length && !steps.length;
  $("tl-path-on").hidden = !scene.path;
  $("tl-summary").textContent = `${scene.summary} Times: ${scene.versions[version].meaning}. From ${scene.source}.`;
  state.trail = [];
  tellTrail();
  letGo();
  layOut();
  fit();
  tellIcicle();
}

function showBeside(value) {
  const step = value.startsWith("step ");
  state.other = step ? opened(Number(value.slice(5))) : null;
  state.beside = step ? 0 : Number(value);
  layOut();
  fit();
  if (state.range) tellRange();
}

function options(select, rows, chosen) {
  select.replaceChildren(...rows.map(([value, word]) => new Option(word, value, false, value === chosen)));
}

function recolour() {
  takeTheme();
  drawOverview();
  paint();
}

$("tl-search").addEventListener("input", (e) => search(e.target.value));
$("tl-scene").addEventListener("change", (e) => show(Number(e.target.value), 0));
$("tl-version").addEventListener("change", (e) => show(state.scene.number, Number(e.target.value)));
$("tl-beside").addEventListener("change", (e) => showBeside(e.target.value));
$("tl-path").addEventListener("change", (e) => { state.showPath = e.target.checked; paint(); });
for (const button of document.querySelectorAll(".tl-buttons button[data-act]")) {
  button.addEventListener("click", () => ({ in: () => zoom(0.6), out: () => zoom(1 / 0.6), fit, sum: rangeHere, keys: () => $("tl-sheet").showModal() })[button.dataset.act]());
}
document.addEventListener("stallwise-finding", ({ detail }) => { if (app.isConnected) showFinding(detail); });
$("tl-sheet").querySelector("button").addEventListener("click", () => $("tl-sheet").close());
new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
new ResizeObserver(layOut).observe(app);

document.querySelector(".tl-bar").hidden = app.hidden = false;
options($("tl-scene"), given.scenes.map((from, k) => [k, from.label]), 0);
takeTheme();
state.beside = given.below !== undefined ? -1 : given.scenes[0].versions.findIndex((v) => v.word.startsWith("fixed"));
show(0, 0);
if (given.below !== undefined) { $("tl-beside").value = "step " + given.below; showBeside("step " + given.below); }
