"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token");
  history.replaceState(null, "", "/?token=" + encodeURIComponent(token));

  const el = (tag, text, props) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    for (const [key, value] of Object.entries(props || {})) node.setAttribute(key, value);
    return node;
  };
  const call = async (path, body, more) => {
    const answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers: { "X-Stallwise-Token": token, ...(more || {}) },
      body: body === undefined ? undefined : body instanceof Blob ? body : JSON.stringify(body),
    });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.problem + (found.hint ? ". Try: " + found.hint : ""));
    return found;
  };

  const seconds = (v) => v >= 1 ? v.toPrecision(3) + " s" : v >= 1e-3 ? (v * 1e3).toPrecision(3) + " ms" : (v * 1e6).toPrecision(3) + " us";
  const gib = (v) => (v / 2 ** 30).toFixed(1) + " GiB";
  const share = (v) => (v * 100).toFixed(1) + "%";
  const count = (v) => Math.round(v).toLocaleString("en");

  // Tabs, by mouse and by arrow keys.
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const shown = new Set();
  const show = (tab) => {
    for (const t of tabs) {
      const on = t === tab;
      t.setAttribute("aria-selected", String(on));
      t.tabIndex = on ? 0 : -1;
      $(t.getAttribute("aria-controls")).hidden = !on;
    }
    if (!shown.has(tab.id)) { shown.add(tab.id); (openers[tab.id] || (() => {}))(); }
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (e) => {
      const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
      if (step) { const next = tabs[(i + step + tabs.length) % tabs.length]; next.focus(); show(next); }
    });
  });
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Diagnose.
  const say = (text, bad) => { $("say").textContent = text; $("say").className = bad ? "problem" : ""; };
  // One question at a time; a choice runs the same diagnosis again with all answers so far.
  const question = (found, body, words) => {
    const box = $("question"), asked = found.state === "sick" ? undefined : found.questions[0];
    box.replaceChildren();
    box.hidden = !asked;
    if (!asked) return;
    box.append(el("p", asked.text));
    for (const choice of asked.choices) {
      const button = el("button", choice, { type: "button" });
      button.addEventListener("click", () => report({ ...body, words, answers: [...(body.answers || []), choice] }));
      box.append(button);
    }
  };
  const report = async (asked) => {
    say("Reading…");
    const body = { words: $("words").value, ...asked };
    try {
      const found = await call("/api/diagnose", { ...body, share: $("share").checked });
      question(found, body, body.words);
      const url = "/report/" + found.report + "?token=" + encodeURIComponent(token);
      $("frame").src = url;
      $("frame").hidden = false;
      $("open-report").href = url;
      $("report-links").hidden = false;
      say(found.what);
    } catch (error) { $("question").hidden = true; $("frame").hidden = true; $("report-links").hidden = true; say(error.message, true); }
  };
  const take = async (files) => {
    let bundle = "";
    try {
      for (const file of files) {
        const name = file.inFolder || file.webkitRelativePath || file.name;
        say("Taking " + name);
        const more = { "X-Name": encodeURIComponent(name), ...(bundle ? { "X-Bundle": bundle } : {}) };
        bundle = (await call("/api/upload", file, more)).bundle;
      }
      if (bundle) await report({ bundle });
    } catch (error) { say(error.message === "Failed to fetch" ? "The upload was refused: it is too large or broke off" : error.message, true); }
  };
  const drop = $("drop");
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (e) => { e.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, (e) => { e.preventDefault(); drop.classList.remove("over"); });
  // A dropped folder gives its files, each with its path inside it.
  const inside = async (entry, path) => {
    if (entry.isFile) {
      const file = await new Promise((yes, no) => entry.file(yes, no));
      file.inFolder = path + file.name;
      return [file];
    }
    const reader = entry.createReader(), found = [];
    for (;;) {
      const some = await new Promise((yes, no) => reader.readEntries(yes, no));
      if (!some.length) return found;
      for (const one of some) if (!one.name.startsWith(".")) found.push(...await inside(one, path + entry.name + "/"));
    }
  };
  drop.addEventListener("drop", async (e) => {
    const entries = [...e.dataTransfer.items].map((i) => i.webkitGetAsEntry && i.webkitGetAsEntry()).filter(Boolean);
    const files = [...e.dataTransfer.files];
    if (!entries.some((entry) => entry.isDirectory)) return take(files);
    const found = [];
    for (const entry of entries) found.push(...await inside(entry, ""));
    take(found);
  });
  $("ask").addEventListener("submit", (e) => {
    e.preventDefault();
    if ($("words").value.trim()) report({}); else say("Type what you see: what is slow, since when, on how many GPUs", true);
  });
  $("choose").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => take([...$("file").files]));
  $("choose-folder").addEventListener("click", () => $("whole").click());
  $("whole").addEventListener("change", () => take([...$("whole").files].filter((f) => !f.webkitRelativePath.split("/").some((p) => p.startsWith(".")))));
  $("folder").addEventListener("toggle", async () => {
    if (!$("folder").open || $("files").childElementCount) return;
    try {
      const found = await call("/api/files");
      $("folder-name").textContent = found.folder;
      for (const f of found.files) {
        const label = el("label");
        label.append(el("input", null, { type: "checkbox", value: f.path }), " " + f.path + " (" + count(f.size_bytes) + " bytes)");
        $("files").append(label);
      }
      if (!found.files.length) $("files").append(el("p", "no files here"));
    } catch (error) { say(error.message, true); }
  });
  $("take").addEventListener("click", () => {
    const paths = [...$("files").querySelectorAll("input:checked")].map((i) => i.value);
    if (paths.length) report({ paths }); else say("Tick a file first", true);
  });

  // Knobs: a form of sliders and choices that asks again whenever one moves; only the newest answer is shown.
  const knobs = (form, rows, ask) => {
    const inputs = {};
    for (const [key, label, kind, value, more] of rows) {
      const id = form.id + "-" + key;
      const line = el("label", label, { for: id });
      let input;
      if (kind === "choice") {
        input = el("select", null, { id });
        for (const [v, t] of more) input.append(el("option", t, { value: v }));
        input.value = value;
      } else {
        input = el("input", null, { id, type: kind === "power" ? "range" : kind, ...(kind === "power" ? { min: more[0], max: more[1], step: 1 } : more) });
        input.value = kind === "power" ? Math.log2(value) : value;
        if (kind !== "number") line.append(el("output", String(value)));
      }
      inputs[key] = { input, kind, out: line.querySelector("output") };
      const knob = el("div");
      knob.append(line, input);
      form.append(knob);
    }
    const read = () => Object.fromEntries(Object.entries(inputs).map(([key, { input, kind, out }]) => {
      const v = kind === "choice" ? input.value : kind === "power" ? 2 ** Number(input.value) : Number(input.value);
      if (out) out.textContent = typeof v === "number" ? v.toLocaleString("en") : v;
      return [key, v];
    }));
    let wanted = 0, busy = false;
    const again = async () => {
      wanted += 1;
      if (busy) return;
      busy = true;
      while (true) {
        const mine = wanted;
        const start = performance.now();
        await ask(read());
        form.dataset.answered = String(performance.now() - start);
        if (mine === wanted) break;
      }
      busy = false;
    };
    form.addEventListener("input", again);
    form.addEventListener("submit", (e) => e.preventDefault());
    again();
    return { set: (values) => { for (const [k, v] of Object.entries(values)) if (inputs[k]) inputs[k].input.value = inputs[k].kind === "power" ? Math.log2(v) : v; again(); }, read };
  };
  const problem = (place, error) => place.replaceChildren(el("p", error.message, { class: "problem" }));
  const bars = (parts, whole, text, kind) => {
    const box = el("div", null, { class: "bars" });
    for (const [name, value] of Object.entries(parts).sort((a, b) => b[1] - a[1])) {
      if (value < 0.002 * whole) continue;
      const row = el("div", null, { class: "b" });
      const bar = el("i", null, kind ? { class: kind } : {});
      bar.style.width = Math.min(100, (100 * value) / whole) + "%";
      const cell = el("span");
      cell.append(bar);
      row.append(el("span", name.replaceAll("_", " ")), cell, el("span", text(value)));
      box.append(row);
    }
    return box;
  };
  const table = (head, rows) => {
    const t = el("table", null, { class: "wide" }), h = el("tr"), body = el("tbody"), top = el("thead");
    for (const c of head) h.append(el("th", c, { scope: "col" }));
    top.append(h);
    for (const r of rows) {
      const tr = el("tr");
      r.forEach((c, k) => { const td = el("td", null, { "data-label": head[k], ...(c.length < 12 ? { class: "tight" } : {}) }); td.append(c instanceof Node ? c : String(c)); tr.append(td); });
      body.append(tr);
    }
    t.append(top, body);
    return scrolling(t, "Table");
  };
  const scrolling = (content, label) => {
    const box = el("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": label });
    box.append(content);
    return box;
  };
  let catalog;
  const known = async () => catalog || (catalog = await call("/api/catalog"));

  const openers = {
    "t-plan": async () => {
      const c = await known();
      const out = $("plan-answer");
      const model = c.models.includes("llama-3-70b") ? "llama-3-70b" : c.models[0];
      const rows = [
        ["model", "model", "choice", model, c.models.map((m) => [m, m])],
        ["gpu", "GPU", "choice", "h100-sxm", c.gpus.map((g) => [g.name, g.title])],
        ["gpus", "GPUs", "power", 512, [0, 14]],
        ["seq", "tokens a sequence", "power", 8192, [9, 20]],
        ["global_batch", "sequences a step", "power", 1024, [0, 14]],
        ["tp", "tensor parallel", "power", 8, [0, 5]], ["pp", "pipeline stages", "power", 4, [0, 6]],
        ["vp", "virtual stages", "range", 1, { min: 1, max: 8 }], ["cp", "context parallel", "power", 1, [0, 6]],
        ["ep", "expert parallel", "power", 1, [0, 8]],
        ["zero", "ZeRO stage", "range", 1, { min: 0, max: 3 }], ["micro_batch", "microbatch", "power", 1, [0, 5]],
        ["recompute", "recompute", "choice", "selective", [["none", "none"], ["selective", "selective"], ["full", "full"]]],
        ["precision", "precision", "choice", "bf16", ["bf16", "fp8", "fp16", "fp32"].map((p) => [p, p])],
      ];
      const form = knobs($("plan-knobs"), rows, async (body) => {
        try {
          const a = await call("/api/layout", body);
          const big = el("p", a.fits ? seconds(a.seconds) + " a step" : "does not fit: " + gib(a.memory_bytes) + " of " + gib(a.room_bytes), { class: a.fits ? "big" : "big no" });
          out.replaceChildren(
            big,
            el("p", "90% interval " + seconds(a.low_s) + " to " + seconds(a.high_s) + " · " + count(a.tokens_per_s) + " tokens/s · MFU " + share(a.mfu_share) + " of the " + a.mfu_against + " (HFU " + share(a.hfu_share) + ") · DP " + a.dp),
            el("p", a.label, { class: "soft" }),
            el("h3", "By how much is known of the cluster"),
            table(["known", "a step", "90% sure", "from"], a.answers.map((k) => [k.name + (k.taken ? " (taken above)" : ""), k.seconds === null ? "measure one" : seconds(k.seconds), k.seconds === null ? "×" + k.half_width_ratio.toFixed(2) + " either way" : seconds(k.low_s) + " to " + seconds(k.high_s), k.basis])),
            el("h3", "Where a step goes"), bars(a.parts, a.seconds, seconds),
            el("h3", "Memory of the fullest GPU: " + gib(a.memory_bytes) + " of " + gib(a.memory_of_gpu_bytes)),
            bars(a.memory_parts, a.memory_of_gpu_bytes, gib, "m"),
          );
        } catch (error) { problem(out, error); }
      });
      const button = el("button", "Find the best layout", { type: "button" });
      const best = el("div");
      $("plan-knobs").append(el("p"), button);
      $("p-plan").append(best);
      button.addEventListener("click", async () => {
        button.disabled = true;
        try {
          const a = await call("/api/search", form.read());
          best.replaceChildren(el("h3", count(a.feasible) + " of " + count(a.considered) + " layouts fit; the best"), table(["layout", "step", "MFU of the " + a.best[0].mfu_against, "memory", "why slower", "take it"], a.best.map((b, i) => {
            const use = el("button", "use", { type: "button", "aria-label": "Use layout " + b.label });
            use.addEventListener("click", () => form.set({ tp: b.axes.tp, pp: b.axes.pp, cp: b.axes.cp, ep: b.axes.ep, vp: b.axes.virtual_stages, zero: b.axes.zero, micro_batch: b.axes.micro_batch, recompute: b.axes.recompute }));
            return [b.label, seconds(b.seconds), share(b.mfu_share), gib(b.memory_bytes), i ? a.lost[i - 1] : "the best", use];
          })));
        } catch (error) { problem(best, error); }
        button.disabled = false;
      });
    },
    "t-serve": async () => {
      const c = await known();
      const out = $("serve-answer");
      const model = c.models.includes("llama-3.1-70b") ? "llama-3.1-70b" : c.models[0];
      knobs($("serve-knobs"), [
        ["model", "model", "choice", model, c.models.map((m) => [m, m])],
        ["gpu", "GPU", "choice", "h100-sxm", c.gpus.map((g) => [g.name, g.title])],
        ["engine", "engine", "choice", "vllm", c.engines.map((e) => [e, e])],
        ["isl", "tokens of a prompt", "power", 2048, [4, 17]], ["osl", "tokens of an answer", "power", 256, [0, 14]],
        ["rate", "requests a second", "range", 16, { min: 1, max: 200 }],
        ["ttft", "first token within (s)", "range", 0.5, { min: 0.1, max: 5, step: 0.1 }],
        ["tpot", "each token within (s)", "range", 0.04, { min: 0.005, max: 0.2, step: 0.005 }],
        ["prefix_hit", "prompt found in the cache", "range", 0, { min: 0, max: 0.95, step: 0.05 }],
      ], async (body) => {
        try {
          const a = await call("/api/serve", body);
          if (!a.options.length) { out.replaceChildren(el("p", "nothing of " + a.tried + " layouts holds this target", { class: "big no" }), table(["why", "layouts"], Object.entries(a.refused))); return; }
          const o = a.options[0];
          out.replaceChildren(
            el("p", o.gpus + " GPUs: " + o.replicas + " x " + o.layout, { class: "big" }),
            el("p", "TTFT " + seconds(o.ttft_s) + " (" + seconds(o.interval_ttft_s[0]) + " to " + seconds(o.interval_ttft_s[1]) + "), TPOT " + seconds(o.tpot_s) + " (" + seconds(o.interval_tpot_s[0]) + " to " + seconds(o.interval_tpot_s[1]) + "); limited by " + o.limited_by),
            scrolling(curve(a.curve, body), "Time a token, picture"),
            el("h3", "Others that hold it"),
            table(["layout", "GPUs", "TTFT", "TPOT", "room for more", "$ an hour"], a.options.map((x) => [x.replicas + " x " + x.layout, x.gpus, seconds(x.ttft_s), seconds(x.tpot_s), share(x.headroom_share), x.dollar_per_hour === null ? "unknown" : x.dollar_per_hour.toFixed(0)])),
          );
        } catch (error) { problem(out, error); }
      });
    },
    "t-pipe": async () => {
      const c = await known();
      const out = $("pipe-answer");
      knobs($("pipe-knobs"), [
        ["schedule", "schedule", "choice", "1f1b", c.schedules.map((s) => [s.name, s.title])],
        ["stages", "stages", "range", 8, { min: 1, max: 32 }], ["microbatches", "microbatches", "range", 16, { min: 1, max: 64 }],
        ["chunks", "virtual stages where interleaved", "range", 2, { min: 2, max: 8 }],
        ["head_layers", "the head weighs (layers)", "range", 0, { min: 0, max: 4, step: 0.1 }],
        ["p2p", "a message between stages (forwards)", "range", 0, { min: 0, max: 1, step: 0.02 }],
      ], async (body) => {
        try {
          const a = await call("/api/pipeline", body);
          const svg = new DOMParser().parseFromString(a.svg, "image/svg+xml").documentElement;
          svg.classList.add("picture");
          out.replaceChildren(
            el("p", "bubble " + share(a.bubble_step_share) + " of the step", { class: "big" }),
            el("p", share(a.bubble_useful_ratio) + " of useful time; a step takes " + a.step_forwards.toFixed(1) + " forwards of a layer; a stage holds up to " + Math.max(...a.held_microbatches).toFixed(1) + " microbatches"),
            scrolling(document.importNode(svg, true), "Schedule, picture"),
          );
        } catch (error) { problem(out, error); }
      });
    },
    "t-drill": stallwiseDrill({ $, el, call }),
  };

  const NS = "http://www.w3.org/2000/svg";
  const s = (tag, props, text) => { const n = document.createElementNS(NS, tag); for (const [k, v] of Object.entries(props)) n.setAttribute(k, v); if (text !== undefined) n.textContent = text; return n; };
  const curve = (points, body) => {
    const W = 640, H = 220, L = 64, B = 34;
    const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Time a token against requests a second of one replica", class: "picture" });
    if (!points.length) return svg;
    const mx = Math.max(...points.map((p) => p.rate_per_s)), my = Math.max(body.tpot * 1.2, ...points.map((p) => p.tpot_s).filter((v) => v < body.tpot * 4));
    const at = (p) => [L + (p.rate_per_s / mx) * (W - L - 12), H - B - Math.min(1, p.tpot_s / my) * (H - B - 14)];
    for (let i = 0; i <= 4; i++) {
      const y = H - B - (i / 4) * (H - B - 14), x = L + (i / 4) * (W - L - 12);
      svg.append(s("line", { class: "grid", x1: L, x2: W - 12, y1: y, y2: y }), s("text", { class: "axis", x: L - 6, y: y + 4, "text-anchor": "end" }, seconds((my * i) / 4 || 0)), s("text", { class: "axis", x, y: H - B + 16, "text-anchor": "middle" }, ((mx * i) / 4).toPrecision(3)));
    }
    const limit = H - B - (body.tpot / my) * (H - B - 14);
    svg.append(s("line", { class: "after", x1: L, x2: W - 12, y1: limit, y2: limit }), s("text", { class: "axis", x: W - 14, y: limit - 5, "text-anchor": "end" }, "target"));
    svg.append(s("path", { class: "c1", d: points.map((p, i) => (i ? "L" : "M") + at(p).map((v) => v.toFixed(1)).join(" ")).join("") }));
    svg.append(s("text", { class: "axis", x: (L + W) / 2, y: H - 4, "text-anchor": "middle" }, "requests a second of one replica; up: time a token"));
    return svg;
  };
  shown.add("t-report");
})();
