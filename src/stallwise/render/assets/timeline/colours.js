// Colours of the theme as the canvas needs them.
const HUES = [222, 262, 190, 300, 160, 240, 205];
const SHADES = 5; // names shade within the colour of their account, so that neighbours are given apart
let colours;

function takeTheme() {
  const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
  const probe = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  app.append(probe);
  const accounts = given.classes.map((name) => { probe.setAttribute("class", name); return getComputedStyle(probe).fill; });
  probe.remove();
  colours = { text: get("--ink"), soft: get("--soft"), rule: get("--rule"), back: get("--bg"), lane: get("--lane"),
    hot: get("--hot"), path: get("--path"), found: get("--found"), accent: get("--accent") };
  const dark = brightness(channels(colours.back)) < 140;
  colours.lane = mixed(colours.lane, colours.back, 0.55);
  // Host events shade by name around one quiet colour; the accounts keep the strong ones.
  const hosts = HUES.map((hue) => dark ? `hsl(${hue} 18% 41%)` : `hsl(${hue} 30% 78%)`);
  colours.accounts = accounts.map(shades);
  colours.hosts = hosts.map(shades);
  colours.library = shades(mixed(hosts[0], colours.back, 0.35));
}

// One colour in all the ways a box is filled: plain, by name, and pale where something else is meant. Mixed here once, so that
// no box has to be blended while the view moves.
function shades(fill) {
  const by = Array.from({ length: SHADES }, (_, k) => mixed(fill, colours.back, 0.72 + 0.07 * k));
  return { plain: fill, by, pale: mixed(fill, colours.back, 0.28), on: brightness(channels(fill)) > 140 ? "#15161a" : "#fff" };
}

function channels(colour) {
  ink.fillStyle = colour;
  return [1, 3, 5].map((i) => parseInt(ink.fillStyle.slice(i, i + 2), 16) || 0);
}

const brightness = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b;

function mixed(over, under, share) {
  const a = channels(over), b = channels(under);
  return `rgb(${a.map((value, k) => Math.round(share * value + (1 - share) * b[k])).join(" ")})`;
}

const byAccount = (i, kind, { c }) => c.account[i] >= 0 && (kind === "accounts" || kind === "stream");

function colourOf(i, kind, from) {
  return byAccount(i, kind, from) ? colours.accounts[from.c.account[i]] : colours.hosts[from.c.name[i] % HUES.length];
}

// Of a box too narrow for its name to be given by a hue.
function plainColour(i, kind, from) {
  return byAccount(i, kind, from) ? colours.accounts[from.c.account[i]] : colours.hosts[0];
}
