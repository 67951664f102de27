// The step for other viewers: events as Perfetto and chrome://tracing read them, host stacks as speedscope does.
const PERFETTO = "https://ui.perfetto.dev", PING_MS = 100, MOST_PINGS = 300;
const HOST_KINDS = ["thread", "python"];

function rowsOf(track) {
  const { scene, version } = state, s = scene.starts[version];
  return scene.levels[track][version].flatMap((level) => [...level]).sort((p, q) => s[p] - s[q] || scene.c.depth[p] - scene.c.depth[q]);
}

function asTrace() {
  const { scene, version } = state, { c, names, tracks } = scene, s = scene.starts[version], e = scene.ends[version], events = [];
  tracks.forEach(([kind, label], track) => {
    events.push({ ph: "M", name: "thread_name", pid: 1, tid: track + 1, ts: 0, args: { name: label } });
    for (const i of rowsOf(track)) events.push({ ph: "X", cat: kind, name: names[c.name[i]], pid: 1, tid: track + 1, ts: (s[i] - least()) / 1e3, dur: (e[i] - s[i]) / 1e3 });
  });
  return JSON.stringify({ displayTimeUnit: "ms", traceEvents: events });
}

// Boxes of a level never overlap, and inner ones are cut to those that hold them: stacks are nested whatever the clock rounds.
function asSpeedscope() {
  const { scene, version } = state, { c } = scene, s = scene.starts[version], e = scene.ends[version], profiles = [];
  scene.tracks.forEach(([kind, label], track) => {
    const rows = HOST_KINDS.includes(kind) ? rowsOf(track) : [];
    if (!rows.length) return;
    const events = [], open = [], first = least();
    const close = (keep, at) => { while (open.length > keep) { const one = open.pop(); events.push({ type: "C", frame: one.frame, at: Math.min(one.end, at) }); } };
    for (const i of rows) {
      close(Math.min(c.depth[i], open.length), s[i] - first);
      const end = Math.min(e[i] - first, ...open.map((one) => one.end)), at = Math.min(s[i] - first, end);
      events.push({ type: "O", frame: c.name[i], at });
      open.push({ frame: c.name[i], end });
    }
    close(0, Infinity);
    profiles.push({ type: "evented", name: label, unit: "nanoseconds", startValue: 0, endValue: events.at(-1).at, events });
  });
  return JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames: scene.names.map((name) => ({ name })) }, profiles, exporter: "stallwise" });
}

function save(name, text) {
  const link = document.createElement("a"), address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// The page of Perfetto is asked until it answers, then it is handed the step inside this browser.
function openInPerfetto() {
  const there = open(PERFETTO), buffer = new TextEncoder().encode(asTrace()).buffer;
  if (!there) return save("step.json", asTrace());
  let pings = 0;
  const asking = setInterval(() => { there.postMessage("PING", PERFETTO); if (++pings > MOST_PINGS) end(); }, PING_MS);
  const answered = (e) => {
    if (e.origin !== PERFETTO || e.data !== "PONG") return;
    end();
    there.postMessage({ perfetto: { buffer, title: state.scene.label } }, PERFETTO);
  };
  const end = () => { clearInterval(asking); removeEventListener("message", answered); };
  addEventListener("message", answered);
}

$("tl-perfetto").addEventListener("click", openInPerfetto);
$("tl-trace").addEventListener("click", () => save("step.json", asTrace()));
$("tl-speedscope").addEventListener("click", () => save("step.speedscope.json", asSpeedscope()));
