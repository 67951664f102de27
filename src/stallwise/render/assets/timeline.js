// One step as boxes on tracks. What is shown was chosen before; here it is only drawn, moved about and asked for.
(() => {
  const holder = document.getElementById("tl-data");
  if (!holder) return;
  const told = JSON.parse(holder.textContent);
  const $ = (id) => document.getElementById(id);
  const app = $("tl"), canvas = app.querySelector("canvas"), ink = canvas.getContext("2d"), hover = app.querySelector(".tl-hover");
  const RULER = 24, OVERVIEW = 16, LEVEL = 15, ROW = 20, GAP = 6, STRIP = 15, WIDE = 640, LEAST_NS = 50;
  const BESIDE_KINDS = ["accounts", "stream"];
  const scenes = told.scenes.map(() => null);
  let scene, version = 0, beside = -1, other = null, lines = [], view = [0, 1], gutter = 0, height = 0;
  let selected = -1, lit = new Set(), hits = [], hitAt = -1, hitSet = new Set(), showPath = false, folded = {}, colours, overview = null;

  // --- data -------------------------------------------------------------------------------------------------------------
  function unpack(text, count, names) {
    const bytes = atob(text), found = {};
    let at = 0;
    for (const name of names) {
      const column = found[name] = new Float64Array(count);
      for (let i = 0, last = 0; i < count; i++) {
        let value = 0, scale = 1, byte;
        do { byte = bytes.charCodeAt(at++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
        column[i] = last += value % 2 ? -(value + 1) / 2 : value / 2;
      }
    }
    return found;
  }

  function opened(number) {
    if (scenes[number]) return scenes[number];
    const from = told.scenes[number], c = unpack(from.data, from.rows, from.columns);
    const starts = from.versions.map((_, v) => v ? c.start.map((s, i) => s + c["start" + v][i]) : c.start);
    const ends = from.versions.map((_, v) => starts[v].map((s, i) => s + c.length[i] + (v ? c["length" + v][i] : 0)));
    // Boxes by track, telling and level, in order of time.
    const tracks = from.tracks.map(() => from.versions.map(() => []));
    for (let i = 0; i < from.rows; i++) {
      for (let v = 0; v < from.versions.length; v++) {
        if (c.version[i] !== -1 && c.version[i] !== v) continue;
        const levels = tracks[c.track[i]][v];
        (levels[c.depth[i]] ||= []).push(i);
      }
    }
    for (const track of tracks) {
      track.forEach((levels, v) => levels.forEach((rows) => { if (v) rows.sort((a, b) => starts[v][a] - starts[v][b]); }));
    }
    const twins = new Map();
    for (let i = 0; i < from.rows; i++) {
      if (c.correlation[i] > 0) twins.set(c.correlation[i], [...(twins.get(c.correlation[i]) || []), i]);
    }
    const path = from.links ? unpack(from.path, from.links, ["kind", "track", "start", "end"]) : null;
    return scenes[number] = { ...from, c, starts, ends, levels: tracks, twins, path, number };
  }

  // What is drawn below: the same step in other times, or the step of another rank.
  const below = () => other || scene;
  const length = () => Math.max(scene.versions[version].length, beside >= 0 ? below().versions[beside].length : 0);

  // --- layout -----------------------------------------------------------------------------------------------------------
  function lay() {
    const width = app.clientWidth;
    gutter = width >= WIDE ? 150 : 0;
    let y = OVERVIEW + RULER;
    lines = [];
    const group = (from, v, kinds) => {
      from.tracks.forEach(([kind, label], track) => {
        const levels = from.levels[track][v];
        if (!levels.length || (kinds && !kinds.includes(kind))) return;
        const deep = kind === "thread" || kind === "python" || kind === "ranges";
        const shut = folded[from.number + ":" + track] ?? (deep && lines.filter((l) => l.kind === kind).length > 0);
        const shown = shut ? 1 : levels.length, each = deep ? LEVEL : ROW;
        const strip = gutter ? 0 : STRIP;
        lines.push({ from, kind, label, track, v, y: y + strip, strip, each, shown, shut, deep: levels.length, height: shown * each });
        y += strip + shown * each + GAP;
      });
    };
    group(scene, version, null);
    if (beside >= 0) {
      const told = below().versions[beside], label = other ? `${other.label}, from its own begin` : `${told.word}: ${seconds(told.length)}`;
      lines.push({ kind: "title", label, y, height: 18, shown: 0 });
      y += 22;
      group(below(), beside, other ? null : BESIDE_KINDS);
    }
    height = y;
    const ratio = devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    small();
    paint();
  }

  function theme() {
    const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
    const probe = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    app.append(probe);
    const accounts = told.classes.map((name) => { probe.setAttribute("class", name); return getComputedStyle(probe).fill; });
    probe.remove();
    colours = { accounts, text: get("--ink"), soft: get("--soft"), rule: get("--rule"), lane: get("--lane"),
      back: get("--bg"), hot: get("--hot"), path: get("--path"), found: get("--found"), accent: get("--accent"), on: new Map() };
    // Host events shade by name around one quiet colour; the accounts keep the strong ones.
    const dark = onto(colours.back) === "#fff";
    colours.hosts = [222, 262, 190, 300, 160, 240, 205].map((hue) => dark ? `hsl(${hue} 18% 41%)` : `hsl(${hue} 30% 78%)`);
    for (const fill of [...accounts, ...colours.hosts]) onto(fill);
  }

  // Black or white, whichever reads better on this colour.
  function onto(colour) {
    if (!colours.on.has(colour)) {
      ink.fillStyle = colour;
      const hex = ink.fillStyle, [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) || 0);
      colours.on.set(colour, 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#15161a" : "#fff");
    }
    return colours.on.get(colour);
  }

  // --- drawing ----------------------------------------------------------------------------------------------------------
  const plot = () => app.clientWidth - gutter;
  const xOf = (t) => gutter + (t - view[0]) / (view[1] - view[0]) * plot();
  const tOf = (x) => view[0] + (x - gutter) / plot() * (view[1] - view[0]);
  let asked = 0, lastFrame = 0, gaps = [];

  function paint() {
    if (!asked) asked = requestAnimationFrame((now) => { asked = 0; clock(now); draw(); });
  }

  // The frame clock: the time from frame to frame while something moves.
  function clock(now) {
    if (now - lastFrame < 250) {
      gaps.push(now - lastFrame);
      if (gaps.length > 240) gaps.shift();
      app.dataset.frameMs = [...gaps].sort((a, b) => a - b)[gaps.length >> 1].toFixed(1);
      app.dataset.frames = gaps.length;
    } else gaps = [];
    lastFrame = now;
  }

  function draw() {
    const width = app.clientWidth, ratio = devicePixelRatio || 1;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.fillStyle = colours.back;
    ink.fillRect(0, 0, width, height);
    ink.font = "11px system-ui, sans-serif";
    ink.textBaseline = "middle";
    ruler(width);
    for (const line of lines) if (line.kind === "title") heading(line, width); else lane(line, width);
    ink.save();
    ink.beginPath();
    ink.rect(gutter, OVERVIEW, width - gutter, height);
    ink.clip();
    for (const line of lines) if (line.kind !== "title") boxes(line, width);
    const ends = [[version, colours.text], ...(beside >= 0 ? [[beside, colours.soft, below()]] : [])];
    for (const [v, colour, from] of ends) border(xOf((from || scene).versions[v].length), colour);
    border(xOf(0), colours.soft);
    if (showPath && scene.path && version === 0) critical();
    arrows();
    ink.restore();
    seen();
  }

  function ruler(width) {
    const rough = (view[1] - view[0]) / Math.max(2, plot() / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power * 10;
    ink.fillStyle = colours.soft;
    ink.textAlign = "center";
    for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
      const x = xOf(t);
      ink.fillStyle = colours.rule;
      ink.fillRect(Math.round(x), OVERVIEW + RULER - 6, 1, height);
      ink.fillStyle = colours.soft;
      if (x > gutter + 20 && x < width - 24) ink.fillText(seconds(t, step), x, OVERVIEW + RULER / 2 - 2);
    }
  }

  function heading(line, width) {
    ink.fillStyle = colours.rule;
    ink.fillRect(0, line.y + 1, width, 1);
    ink.fillStyle = colours.text;
    ink.textAlign = "left";
    ink.font = "600 12px system-ui, sans-serif";
    ink.fillText(line.label, 8, line.y + 12);
    ink.font = "11px system-ui, sans-serif";
  }

  function lane(line, width) {
    ink.fillStyle = colours.lane;
    ink.globalAlpha = 0.55;
    ink.fillRect(gutter, line.y, width - gutter, line.height);
    ink.globalAlpha = 1;
    ink.fillStyle = colours.text;
    ink.textAlign = "left";
    const mark = line.deep > 1 ? (line.shut ? "▸ " : "▾ ") : "";
    ink.fillText(short(mark + line.label, gutter ? 23 : 50), 8, gutter ? line.y + Math.min(line.height, ROW) / 2 : line.y - 7);
  }

  const colour = (i, kind, { c }) => {
    const account = c.account[i];
    return account >= 0 && (kind === "accounts" || kind === "stream") ? colours.accounts[account] : colours.hosts[c.name[i] % colours.hosts.length];
  };

  function boxes(line, width) {
    const { starts, ends, c } = line.from, s = starts[line.v], e = ends[line.v], t0 = view[0], t1 = view[1], mine = line.from === scene;
    const dim = lit.size > 0 || hitSet.size > 0, levels = line.from.levels[line.track][line.v], shaded = line.kind !== "accounts";
    const scale = plot() / (t1 - t0), labels = new Map(), marked = [];
    let style = "", alpha = 1;
    const paintWith = (fill, clear) => {  // the canvas is asked to change only what changes
      if (fill !== style) ink.fillStyle = style = fill;
      if (clear !== alpha) ink.globalAlpha = alpha = clear;
    };
    for (let depth = 0; depth < line.shown; depth++) {
      const rows = levels[depth];
      if (!rows) continue;
      const y = line.y + depth * line.each, tall = line.each - 1;
      let reach = -1;
      for (let k = firstAfter(rows, e, t0); k < rows.length; k++) {
        const i = rows[k];
        if (s[i] >= t1) break;
        const x1 = Math.min(gutter + (e[i] - t0) * scale, width);
        const shines = mine && (i === selected || (dim && (lit.has(i) || hitSet.has(i))));
        if (x1 - reach < 0.7 && !shines) continue;  // hidden behind its neighbour's pixel
        let x0 = Math.max(gutter + (s[i] - t0) * scale, gutter);
        if (x0 - reach < 1 && reach > x0 - 2) x0 = reach;  // a gap that no pixel shows
        const wide = Math.max(x1 - x0 - (shaded && x1 - x0 > 3 ? 0.7 : 0), 0.8), fill = colour(i, line.kind, line.from);
        reach = x1;
        // Names shade within the colour of their account, so that neighbours are told apart.
        paintWith(fill, dim && !shines ? 0.28 : shaded && wide > 2 ? 0.72 + 0.07 * (c.name[i] % 5) : 1);
        ink.fillRect(x0, y, wide, tall);
        if (wide > 2 && c.count[i] > 1) { paintWith(colours.back, 1); ink.fillRect(x0, y + tall / 2, wide, 0.7); }
        if (wide > 2 && c.idle[i] > 0 && c.account[i] >= 0) {
          paintWith(colours.accounts[c.account[i]], 1);
          ink.fillRect(x0, y + tall - 3, wide, 3);
        }
        if (shines) marked.push([x0, y, wide, tall, i === selected ? colours.text : lit.has(i) ? colours.hot : colours.found]);
        if (wide > 30 && !(dim && !shines)) {
          const dark = onto(fill);
          if (!labels.has(dark)) labels.set(dark, []);
          labels.get(dark).push(i, x0 + 3, y + tall / 2 + 0.5, Math.floor((wide - 6) / 6.1));
        }
      }
    }
    ink.globalAlpha = 1;
    for (const mark of marked) frame(...mark);
    ink.textAlign = "left";
    for (const [shade, texts] of labels) {
      ink.fillStyle = shade;
      for (let k = 0; k < texts.length; k += 4) ink.fillText(short(words(texts[k], line), texts[k + 3]), texts[k + 1], texts[k + 2]);
    }
  }

  function words(i, line) {
    const { c, names, starts, ends } = line.from, more = c.count[i] > 1 ? ` +${c.count[i] - 1}` : "";
    return names[c.name[i]] + more + (line.kind === "accounts" ? ` ${seconds(ends[line.v][i] - starts[line.v][i])}` : "");
  }

  function frame(x, y, wide, tall, shade) {
    ink.strokeStyle = shade;
    ink.lineWidth = 2;
    ink.strokeRect(x - 0.5, y + 0.5, Math.max(wide, 2) + 1, tall - 1);
  }

  function border(x, shade) {
    if (x < gutter || x > app.clientWidth) return;
    ink.strokeStyle = shade;
    ink.setLineDash([4, 3]);
    ink.lineWidth = 1;
    ink.beginPath();
    ink.moveTo(x, OVERVIEW + RULER - 4);
    ink.lineTo(x, height);
    ink.stroke();
    ink.setLineDash([]);
  }

  // The chain that made the step as long as it is: a line along each link, thin where nothing runs, and down where it changes
  // the track.
  function critical() {
    const { kind, start, end, track } = scene.path, on = new Map(lines.filter(first).map((l) => [l.track, l]));
    const strong = new Path2D(), thin = new Path2D(), from = firstAfter(null, end, view[0]);
    let before = from, drawn = -1, last = null;
    while (before > 0 && !on.has(track[before])) before--;
    for (let k = before; k < start.length && start[k] <= view[1]; k++) {
      const line = on.get(track[k]), y = line ? line.y + line.each - 1.5 : last;
      if (k < from || y === null) { last = y; continue; }
      const x0 = Math.max(xOf(start[k]), gutter), x1 = Math.min(xOf(end[k]), app.clientWidth), turns = last !== null && last !== y;
      if (!turns && x1 - drawn < 0.5) continue;
      if (turns) { thin.moveTo(x0, last); thin.lineTo(x0, y); }
      const path = kind[k] === 2 ? thin : strong;
      path.moveTo(x0, y);
      path.lineTo(Math.max(x1, x0 + 0.5), y);
      last = y;
      drawn = x1;
    }
    ink.strokeStyle = colours.path;
    ink.lineWidth = 1.2;
    ink.stroke(thin);
    ink.lineWidth = 3;
    ink.stroke(strong);
  }

  // From a call to the work that it launched.
  function arrows() {
    if (selected < 0 || scene.c.correlation[selected] <= 0) return;
    const from = place(selected);
    for (const twin of scene.twins.get(scene.c.correlation[selected]) || []) {
      const to = place(twin);
      if (twin === selected || !from || !to) continue;
      const [a, b] = from.x0 <= to.x0 ? [from, to] : [to, from];
      ink.strokeStyle = colours.accent;
      ink.lineWidth = 1.6;
      ink.beginPath();
      ink.moveTo(a.x1, a.y);
      ink.bezierCurveTo(a.x1 + 40, a.y, b.x0 - 40, b.y, b.x0, b.y);
      ink.stroke();
      ink.fillStyle = colours.accent;
      ink.beginPath();
      ink.arc(b.x0, b.y, 3, 0, 7);
      ink.fill();
    }
  }

  // The whole step in small, with the part that is seen. Only the frame moves, so the boxes are drawn once.
  function small() {
    const ratio = devicePixelRatio || 1, rows = scene.levels[0][version][0] || [], least = Math.min(scene.begin, 0);
    const x = (t) => (t - least) / (length() - least) * plot();
    overview = document.createElement("canvas");
    overview.width = Math.max(1, Math.round(plot() * ratio));
    overview.height = Math.round((OVERVIEW - 3) * ratio);
    const on = overview.getContext("2d");
    on.scale(ratio, ratio);
    on.fillStyle = colours.lane;
    on.fillRect(0, 0, plot(), OVERVIEW);
    for (const i of rows) {
      const x0 = x(scene.starts[version][i]);
      on.fillStyle = colour(i, "accounts", scene);
      on.fillRect(x0, 0, x(scene.ends[version][i]) - x0 + 0.3, OVERVIEW);
    }
  }

  function seen() {
    const least = Math.min(scene.begin, 0), x = (t) => gutter + (t - least) / (length() - least) * plot();
    ink.drawImage(overview, gutter, 0, plot(), OVERVIEW - 3);
    const from = Math.max(x(view[0]), gutter), to = Math.min(x(view[1]), gutter + plot());
    ink.fillStyle = colours.back;
    ink.globalAlpha = 0.72;
    ink.fillRect(gutter, 0, from - gutter, OVERVIEW - 3);
    ink.fillRect(to, 0, gutter + plot() - to, OVERVIEW - 3);
    ink.globalAlpha = 1;
    ink.strokeStyle = colours.text;
    ink.lineWidth = 1.5;
    ink.strokeRect(from + 0.75, 0.75, Math.max(to - from - 1.5, 3), OVERVIEW - 4.5);
  }

  // --- finding one's way -----------------------------------------------------------------------------------------------
  function firstAfter(rows, ends, t) {
    let low = 0, high = rows ? rows.length : ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[rows ? rows[middle] : middle] <= t) low = middle + 1; else high = middle;
    }
    return low;
  }

  function short(text, room) {
    return text.length <= room ? text : room < 3 ? "" : text.slice(0, room - 1) + "…";
  }

  function seconds(ns, grain) {
    const size = Math.abs(ns), [unit, word] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 || !size ? [1e3, "µs"] : [1, "ns"];
    const digits = grain ? Math.max(0, Math.ceil(-Math.log10(grain / unit) - 1e-9)) : size / unit >= 100 ? 0 : size / unit >= 10 ? 1 : 2;
    return ns ? `${(ns / unit).toFixed(digits)} ${word}` : "0";
  }

  const first = (line) => line.from === scene && line.v === version;  // a track of the upper telling

  function place(i) {
    const line = lines.find((l) => first(l) && l.track === scene.c.track[i]);
    if (!line) return null;
    const depth = Math.min(scene.c.depth[i], line.shown - 1);
    return { x0: xOf(scene.starts[version][i]), x1: xOf(scene.ends[version][i]), y: line.y + (depth + 0.5) * line.each };
  }

  function at(x, y) {
    const line = lines.find((l) => l.kind !== "title" && y >= l.y && y < l.y + l.height);
    if (!line || x < gutter) return [-1, line];
    const rows = line.from.levels[line.track][line.v][Math.floor((y - line.y) / line.each)] || [];
    const slack = 2 / plot() * (view[1] - view[0]), t = tOf(x), s = line.from.starts[line.v], e = line.from.ends[line.v];
    let best = -1, near = slack;
    for (let k = Math.max(firstAfter(rows, e, t) - 1, 0); k < rows.length && s[rows[k]] <= t + slack; k++) {
      const away = Math.max(s[rows[k]] - t, t - e[rows[k]], 0);
      if (away <= near) { best = rows[k]; near = away; if (!away) break; }
    }
    return [best, line];
  }

  function look(from, to) {
    const least = Math.min(scene.begin, 0), most = length(), room = (most - least) * 0.05;
    let width = Math.min(Math.max(to - from, LEAST_NS), most - least + 2 * room);
    from = Math.max(least - room, Math.min(from, most + room - width));
    view = [from, from + width];
    app.dataset.from = Math.round(view[0]);
    app.dataset.to = Math.round(view[1]);
    paint();
  }

  function zoom(factor, x = gutter + plot() / 2) {
    const t = tOf(x);
    look(t - (t - view[0]) * factor, t + (view[1] - t) * factor);
  }
  const pan = (share) => look(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
  const fit = () => look(0 - length() * 0.01, length() * 1.01);

  let gliding = 0;
  function glide(from, to) {
    cancelAnimationFrame(gliding);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return look(from, to);
    const [a, b] = view, began = performance.now();
    const step = (now) => {
      const part = Math.min((now - began) / 220, 1), ease = 1 - (1 - part) ** 3;
      look(a + (from - a) * ease, b + (to - b) * ease);
      if (part < 1) gliding = requestAnimationFrame(step);
    };
    gliding = requestAnimationFrame(step);
  }

  // Brings a box into sight, wide enough to be seen.
  function reveal(i, close) {
    const s = scene.starts[version][i], e = scene.ends[version][i], wide = view[1] - view[0], seen = s >= view[0] && e <= view[1];
    unfold(i);
    if (close) return glide(s - (e - s) * 0.6 - LEAST_NS, e + (e - s) * 0.6 + LEAST_NS);
    if (seen && (e - s) / wide * plot() > 6) return paint();
    const around = Math.min(Math.max((e - s) * 8, LEAST_NS * 10), wide);
    glide((s + e - around) / 2, (s + e + around) / 2);
  }

  function unfold(i) {
    const line = lines.find((l) => first(l) && l.track === scene.c.track[i]);
    if (line && line.shut && scene.c.depth[i] > 0) { folded[scene.number + ":" + line.track] = false; lay(); }
  }

  // --- facts of an event -----------------------------------------------------------------------------------------------
  function choose(i, v = version, from = scene) {
    selected = from === scene ? i : -1;
    const box = $("tl-facts");
    box.hidden = i < 0;
    app.dataset.selected = i < 0 ? "" : from.names[from.c.name[i]];
    if (i >= 0) {
      const { c } = from, [kind, track] = from.tracks[c.track[i]], many = c.count[i] > 1;
      const facts = [["lasts", seconds(from.ends[v][i] - from.starts[v][i])], ["begins", `${seconds(from.starts[v][i])} into the step`], [kind === "accounts" ? "track" : kind, track]];
      if (many) facts.push(["block", `${c.count[i]} events, ${seconds(c.length[i] + c.more[i])} in all; the name is that of the longest`]);
      if (c.account[i] >= 0) facts.push(["account", from.accounts[c.account[i]]]);
      if (c.work[i] >= 0) facts.push(["kind of work", from.works[c.work[i]]]);
      if (c.idle[i] > 0) facts.push(["device idle in it", seconds(c.idle[i])]);
      if (c.operator[i] >= 0) facts.push(["operator", from.names[c.operator[i]]]);
      if (c.correlation[i] > 0) facts.push(["correlation", String(c.correlation[i])]);
      from.versions.forEach((other, w) => {
        if (w !== v && c.version[i] === -1) facts.push([other.word, `${seconds(from.ends[w][i] - from.starts[w][i])} at ${seconds(from.starts[w][i])}`]);
      });
      for (const text of c.facts[i] >= 0 ? from.facts[c.facts[i]] : []) facts.push(text.split(/: (.*)/s).slice(0, 2));
      const title = document.createElement("h3"), list = document.createElement("dl");
      title.textContent = from.names[c.name[i]];
      for (const [word, value] of facts) {
        const dt = document.createElement("dt"), dd = document.createElement("dd");
        dt.textContent = word;
        dd.textContent = value;
        list.append(dt, dd);
      }
      box.replaceChildren(title, list);
    }
    paint();
  }

  function neighbour(by) {
    if (selected < 0) return;
    const rows = scene.levels[scene.c.track[selected]][version][scene.c.depth[selected]] || [], next = rows[rows.indexOf(selected) + by];
    if (next !== undefined) { choose(next); reveal(next); }
  }

  function otherTrack(by) {
    const seen = lines.filter(first);
    const from = selected < 0 ? -1 : seen.findIndex((l) => l.track === scene.c.track[selected]);
    const line = seen[Math.max(0, Math.min(seen.length - 1, from + by))], rows = line && scene.levels[line.track][version][0];
    if (!rows) return;
    const t = selected < 0 ? (view[0] + view[1]) / 2 : scene.starts[version][selected];
    const next = rows[Math.min(firstAfter(rows, scene.ends[version], t), rows.length - 1)];
    choose(next);
    reveal(next);
  }

  // --- search and jumps ------------------------------------------------------------------------------------------------
  function search(text) {
    const wanted = text.trim().toLowerCase();
    const names = new Set(wanted ? scene.names.flatMap((name, k) => name.toLowerCase().includes(wanted) ? [k] : []) : []);
    hits = [];
    for (let i = 0; i < scene.rows && names.size; i++) {
      if (names.has(scene.c.name[i]) && (scene.c.version[i] === -1 || scene.c.version[i] === version)) hits.push(i);
    }
    hits.sort((a, b) => scene.starts[version][a] - scene.starts[version][b]);
    hitSet = new Set(hits);
    hitAt = -1;
    $("tl-hits").textContent = wanted ? `${hits.length} found` : "";
    paint();
  }

  function nextHit(by) {
    if (!hits.length) return;
    hitAt = (hitAt + by + hits.length) % hits.length;
    $("tl-hits").textContent = `${hitAt + 1} of ${hits.length}`;
    choose(hits[hitAt]);
    reveal(hits[hitAt]);
  }

  function jump(finding) {
    const [number, rows] = told.proofs[finding];
    if (version !== 0 || number !== scene.number) { $("tl-scene").value = number; show(number, 0); }
    lit = new Set(rows);
    choose(rows[0]);
    reveal(rows[0]);
    $("timeline").scrollIntoView({ block: "start" });
    app.focus({ preventScroll: true });
  }

  function letGo() {
    lit = new Set();
    hits = [];
    hitSet = new Set();
    $("tl-search").value = $("tl-hits").textContent = "";
    choose(-1);
  }

  function show(number, v) {
    scene = opened(number);
    version = v;
    const words = scene.versions.map((one, w) => [w, `${one.word}: ${seconds(one.length)}`]);
    options($("tl-version"), words, version);
    const others = words.filter(([w]) => w !== version), ranks = told.scenes.flatMap((from, k) => k === number ? [] : [["step " + k, from.label]]);
    if (other || !others.some(([w]) => w === beside)) beside = -1;
    other = null;
    options($("tl-beside"), [[-1, "nothing"], ...others, ...ranks], beside);
    $("tl-version").parentNode.hidden = words.length < 2;
    $("tl-beside").parentNode.hidden = !others.length && !ranks.length;
    $("tl-path-on").hidden = !scene.path;
    $("tl-summary").textContent = `${scene.summary} Times: ${scene.versions[version].meaning}. From ${scene.source}.`;
    letGo();
    lay();
    fit();
  }

  function options(select, rows, chosen) {
    select.replaceChildren(...rows.map(([value, word]) => new Option(word, value, false, value === chosen)));
  }

  // --- pointer, keys, controls -----------------------------------------------------------------------------------------
  const down = new Map();
  let moved = 0, pinch = 0;
  const inside = (e) => { const box = app.getBoundingClientRect(); return [e.clientX - box.left - app.clientLeft, e.clientY - box.top - app.clientTop]; };

  function fromOverview(x) {
    const least = Math.min(scene.begin, 0), middle = least + (x - gutter) / plot() * (length() - least), half = (view[1] - view[0]) / 2;
    look(middle - half, middle + half);
  }

  app.addEventListener("pointerdown", (e) => {
    const [x, y] = inside(e);
    down.set(e.pointerId, { x, y, overview: y < OVERVIEW });
    app.setPointerCapture(e.pointerId);
    moved = 0;
    pinch = 0;
    hover.hidden = true;
    if (y < OVERVIEW) fromOverview(x);
  });
  app.addEventListener("pointermove", (e) => {
    const [x, y] = inside(e), was = down.get(e.pointerId);
    if (!was) return e.pointerType === "mouse" ? point(x, y) : undefined;
    if (was.overview) { fromOverview(x); return; }
    const others = [...down].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
    if (others.length) {
      const apart = Math.abs(x - others[0].x), before = Math.abs(was.x - others[0].x);
      if (apart > 4 && before > 4) zoom(before / apart, (x + others[0].x) / 2);
      moved = pinch = 9;
    } else {
      moved += Math.abs(x - was.x) + Math.abs(y - was.y);
      if (moved > 3) { app.classList.add("drags"); pan((was.x - x) / plot()); }
    }
    down.set(e.pointerId, { x, y });
  });
  const up = (e) => {
    const was = down.get(e.pointerId);
    down.delete(e.pointerId);
    app.classList.remove("drags");
    if (!was || was.overview || moved > 3 || pinch || e.type === "pointercancel") return;
    const [x, y] = inside(e), [i, line] = at(x, y);
    const label = lines.find((l) => l.deep > 1 && (gutter ? x < gutter && y >= l.y && y < l.y + l.height : y >= l.y - l.strip && y < l.y));
    if (label) {
      folded[label.from.number + ":" + label.track] = !label.shut;
      lay();
    } else if (i >= 0) choose(i, line.v, line.from); else letGo();
  };
  app.addEventListener("pointerup", up);
  app.addEventListener("pointercancel", up);
  app.addEventListener("pointerleave", () => { hover.hidden = true; });
  app.addEventListener("dblclick", (e) => { const [i, line] = at(...inside(e)); if (i >= 0 && first(line)) reveal(i, true); });
  app.addEventListener("wheel", (e) => {
    const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
    if (!sideways && !e.ctrlKey && !e.metaKey && document.activeElement !== app) return;  // the page scrolls until the timeline is meant
    e.preventDefault();
    const by = (sideways ? e.deltaX || e.deltaY : e.deltaY) * (e.deltaMode ? 16 : 1);
    if (sideways) pan(by / plot()); else zoom(Math.exp(Math.max(-240, Math.min(240, by)) * 0.0025), inside(e)[0]);
  }, { passive: false });

  function point(x, y) {
    const [i, line] = at(x, y);
    hover.hidden = i < 0;
    if (i < 0) return;
    const { c, names, starts, ends } = line.from, many = c.count[i] > 1 ? ` and ${c.count[i] - 1} more` : "";
    hover.textContent = `${names[c.name[i]]}${many}: ${seconds(ends[line.v][i] - starts[line.v][i])}`;
    hover.style.left = Math.max(4, Math.min(x + 14, app.clientWidth - hover.offsetWidth - 8)) + "px";
    hover.style.top = (y + 30 + hover.offsetHeight > height ? y - hover.offsetHeight - 12 : y + 18) + "px";
  }

  const keys = {
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), a: () => pan(-0.15), d: () => pan(0.15),
    "+": () => zoom(0.7), "=": () => zoom(0.7), w: () => zoom(0.7), "-": () => zoom(1 / 0.7), s: () => zoom(1 / 0.7),
    ArrowUp: () => otherTrack(-1), ArrowDown: () => otherTrack(1), ",": () => neighbour(-1), ".": () => neighbour(1),
    Enter: () => selected >= 0 && reveal(selected, true), f: () => selected >= 0 && reveal(selected, true),
    0: fit, Home: fit, Escape: letGo, "/": () => $("tl-search").focus(),
  };
  app.addEventListener("keydown", (e) => {
    const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act();
  });
  $("tl-search").addEventListener("input", (e) => search(e.target.value));
  $("tl-search").addEventListener("keydown", (e) => {
    if (e.key === "Enter") { e.preventDefault(); nextHit(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { letGo(); app.focus(); }
  });
  $("tl-scene").addEventListener("change", (e) => show(Number(e.target.value), 0));
  $("tl-version").addEventListener("change", (e) => show(scene.number, Number(e.target.value)));
  $("tl-beside").addEventListener("change", (e) => {
    const rank = e.target.value.startsWith("step ");
    other = rank ? opened(Number(e.target.value.slice(5))) : null;
    beside = rank ? 0 : Number(e.target.value);
    lay();
    fit();
  });
  $("tl-path").addEventListener("change", (e) => { showPath = e.target.checked; paint(); });
  for (const button of document.querySelectorAll(".tl-buttons button")) {
    button.addEventListener("click", () => ({ in: () => zoom(0.6), out: () => zoom(1 / 0.6), fit })[button.dataset.act]());
  }
  for (const link of document.querySelectorAll("a.jump")) {
    link.addEventListener("click", (e) => { e.preventDefault(); jump(link.dataset.finding); });
  }
  const recolour = () => { theme(); small(); paint(); };
  new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(lay).observe(app);

  document.querySelector(".tl-bar").hidden = app.hidden = false;
  options($("tl-scene"), told.scenes.map((from, k) => [k, from.label]), 0);
  theme();
  beside = told.scenes[0].versions.findIndex((v) => v.word.startsWith("fixed"));
  show(0, 0);
})();
