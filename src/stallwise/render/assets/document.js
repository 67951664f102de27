// What every page of an answer does: light or dark, copying, tabs, and the list of findings. It may be started again for another answer.
const root = document.documentElement, all = (what, within = document) => [...within.querySelectorAll(what)];
const once = (node, act) => { if (node && !node.dataset.on) { node.dataset.on = "1"; act(node); } };
const tell = (what, detail) => document.dispatchEvent(new CustomEvent("stallwise-" + what, { detail }));

once(document.getElementById("theme"), (toggle) => {
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
});
for (const button of all("button[data-copy]")) once(button, () => {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const place = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(place.textContent);
      button.textContent = "copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(place);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "selected";
    }
  });
});

// Tabs are made here: without scripts, and on paper, everything stands below each other.
const panels = all(".panels > .panel"), tabs = panels.length > 1 ? panels.map(tabOf) : [];

function tabOf(panel) {
  const tab = document.createElement("button");
  Object.assign(tab, { type: "button", id: panel.id.replace("panel", "tab"), textContent: panel.dataset.word, role: "tab" });
  tab.setAttribute("aria-controls", panel.id);
  tab.addEventListener("click", () => showTab(panel));
  panel.role = "tabpanel";
  panel.setAttribute("aria-labelledby", tab.id);
  return tab;
}

function showTab(shown) {
  panels.forEach((panel, at) => {
    panel.hidden = panel !== shown;
    tabs[at].setAttribute("aria-selected", String(panel === shown));
    tabs[at].tabIndex = panel === shown ? 0 : -1;
  });
}

// Brings a part into sight: its tab, and whatever it is folded in.
function reveal(node) {
  const panel = node && node.closest(".panel");
  if (!panel) return;
  if (tabs.length) showTab(panel);
  for (let fold = node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  node.scrollIntoView({ block: "start" });
  const lead = node.querySelector("summary") || node;
  if (lead === node) node.tabIndex = -1;
  lead.focus({ preventScroll: true });
}

if (tabs.length) {
  const bar = document.createElement("div"), list = document.createElement("div");
  bar.className = "parts";
  bar.dataset.line = panels[0].parentElement.dataset.line;
  list.role = "tablist";
  list.ariaLabel = "Parts of the answer";
  list.append(...tabs);
  bar.append(list);
  panels[0].before(bar);
  showTab(panels[0]);
  bar.addEventListener("keydown", (e) => {
    const at = tabs.indexOf(e.target), to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    showTab(panels[next]);
    tabs[next].focus();
  });
  new IntersectionObserver(([seen]) => bar.classList.toggle("past", !seen.isIntersecting)).observe(document.getElementById("verdict"));
}

// A finding is opened from the list, from its own heading, or from an event that it cites; the timeline draws what proves it.
const links = all(".listed a"), timeline = document.getElementById("timeline");
const inTimeline = () => timeline && !timeline.closest(".panel").hidden;
const jumps = new Map(all("a.jump").map((link) => [link.dataset.finding, link]));

function mark(finding) {
  for (const link of links) link.toggleAttribute("aria-current", link.dataset.finding === finding);
  tell("finding", Number(finding));
}

for (const link of links) link.addEventListener("click", (e) => {
  e.preventDefault();
  mark(link.dataset.finding);
  if (!inTimeline() || !jumps.has(link.dataset.finding)) reveal(document.getElementById(link.hash.slice(1)));
});
for (const [finding, link] of jumps) link.addEventListener("click", (e) => {
  e.preventDefault();
  reveal(timeline);
  mark(finding);
  document.getElementById("tl").focus({ preventScroll: true });
});
for (const fold of all("details[data-finding]")) fold.addEventListener("toggle", () => {
  if (fold.open) mark(fold.dataset.finding);
  else if (links.some((link) => link.dataset.finding === fold.dataset.finding && link.hasAttribute("aria-current"))) mark("-1");
});

once(root, () => {
  document.addEventListener("stallwise-open", ({ detail }) => reveal(document.getElementById("finding-" + detail)));
  addEventListener("hashchange", () => reveal(document.getElementById(location.hash.slice(1))));
  addEventListener("beforeprint", () => { for (const fold of all("details.print")) fold.open = true; });
  addEventListener("keydown", (e) => { if (e.key === "Escape" && document.activeElement.classList.contains("tip")) document.activeElement.blur(); });
});
if (location.hash) reveal(document.getElementById(location.hash.slice(1)));
