"use strict";
// The drill's tab: what is shown, and below it the form of what is asked now. Whatever is clicked is sent as the text one would type.
const stallwiseDrill = ({ $, el, call }) => {
  let session = "";
  const button = (text, act, props) => { const b = el("button", text, { type: "button", ...(props || {}) }); b.addEventListener("click", act); return b; };
  const send = (text) => talk("reply", { session, text });
  const row = (...nodes) => { const r = el("div", null, { class: "line" }); r.append(...nodes); return r; };

  const artifacts = (form) => [
    el("p", "Artifacts cost minutes of the incident. Or ask below in your own words."),
    ...form.menu.map((m, n) => button((m.have ? "again: " : "") + m.what + " · " + (m.have ? 0 : m.minutes) + " min", () => send("ask " + (n + 1)))),
    button("A hint, for a point", () => send("hint")),
    button("I have seen enough: commit", () => send("commit"), { class: "main" }),
  ];
  const one = (form) => form.lines.map((text, n) => button(text, () => send(String(n + 1)), { class: "choice" }));
  const sure = () => [50, 60, 70, 80, 90, 99].map((p) => button(p + "%", () => send(p + "%")));
  const order = (form) => {
    const chosen = [];
    const lines = form.lines.map((text, n) => button(text, () => {
      const at = chosen.indexOf(n);
      if (at < 0) chosen.push(n); else chosen.splice(at, 1);
      lines.forEach((b, m) => { const place = chosen.indexOf(m); b.textContent = (place < 0 ? "" : place + 1 + ". ") + form.lines[m]; b.setAttribute("aria-pressed", String(place >= 0)); });
    }, { class: "choice", "aria-pressed": "false" }));
    return [el("p", "Click in order; a second click takes a line out."), ...lines, button("Commit to this order", () => send(chosen.map((n) => n + 1).join(" ") || " "), { class: "main" })];
  };
  const ticks = (form) => {
    const boxes = form.lines.map((text, n) => {
      const box = el("input", null, { type: "checkbox", id: "tick" + n });
      return [box, row(box, el("label", text, { for: "tick" + n }))];
    });
    return [...boxes.map(([, r]) => r), button("These", () => send(boxes.map(([b], n) => b.checked ? n + 1 : 0).filter(Boolean).join(" ") || "none"), { class: "main" })];
  };
  const forms = { artifacts, again: one, one, order, ticks, sure };
  const skippable = ["tell", "again", "sure", "challenge", "one", "order", "ticks"];

  let began = 0, target = 0, stop = 0, ticking = null, open = "";
  const two = (s) => Math.floor(s / 60) + ":" + String(Math.floor(s % 60)).padStart(2, "0");
  const tick = () => {
    const s = (Date.now() - began) / 1000;
    $("drill-clock").textContent = two(s) + " of " + two(target) + (s > stop ? ", time is up: answer what is asked" : s > target ? ", hard stop at " + two(stop) : "");
  };
  const side = (a) => {
    const round = a.clock_s !== undefined;
    $("drill-play").hidden = false;
    $("drill-side").hidden = $("drill-clock").hidden = !round;
    clearInterval(ticking);
    if (!round) return;
    began = Date.now() - a.clock_s * 1000; target = a.target_s; stop = a.stop_s;
    tick();
    if (!a.over) ticking = setInterval(tick, 1000);
    const fresh = a.artifacts.filter((p) => !known.includes(p.file));
    known = a.artifacts.map((p) => p.file);
    if (fresh.length) open = fresh[0].file;
    $("artifacts").replaceChildren(...a.artifacts.map((p) => button(p.file, () => { open = p.file; pane(a.artifacts); }, { "data-file": p.file })));
    pane(a.artifacts);
    $("notes").replaceChildren(...a.notes.map((n) => el("li", n)));
    sheet(a.sheet);
  };
  let known = [];
  const pane = (artifacts) => {
    const shown = artifacts.find((p) => p.file === open);
    $("paper").hidden = !shown;
    $("paper").textContent = shown ? shown.text : "";
    for (const b of $("artifacts").children) b.setAttribute("aria-pressed", String(b.dataset.file === open));
  };
  const sheet = (result) => {
    $("sheet").hidden = !result;
    if (!result) return;
    const table = el("table"), head = el("tr");
    head.append(el("th", "Dimension"), el("th", "Mark"), el("th", "Why"));
    table.append(head, ...result.rows.map((r) => { const tr = el("tr"); tr.append(el("td", r.dimension), el("td", r.mark), el("td", r.why)); return tr; }));
    $("sheet").replaceChildren(el("h3", result.level + ": " + result.points + " of " + result.of), table);
    rounds();
  };
  const rounds = async () => {
    const b = await call("/api/drill/rounds", {});
    if (!b.played) return;
    const lines = Object.entries(b.chart).map(([name, signs]) => name.padEnd(10) + " " + signs);
    $("sheet").append(el("h3", "Your rounds, oldest first (· missing, ▄ pass, █ strong)"), el("pre", lines.join("\n")));
  };

  const offer = (form) => {
    const box = $("drill-form");
    box.replaceChildren();
    if (!form) return;
    box.append(...(forms[form.stage] || (() => []))(form));
    if (skippable.includes(form.stage)) box.append(button("Skip", () => send("skip")));
  };
  const talk = async (verb, body) => {
    try {
      const a = await call("/api/drill/" + verb, body);
      session = a.session || session;
      if (body.text) $("talk").append(el("p", body.text, { class: "me" }));
      const line = el("p", a.says);
      $("talk").append(line);
      side(a);
      offer(a.form);
      $("reply").hidden = Boolean(a.over);
      line.scrollIntoView({ block: "nearest" });
    } catch (error) { $("talk").append(el("p", error.message, { class: "problem" })); }
  };
  $("reply").addEventListener("submit", (e) => { e.preventDefault(); const text = $("text").value.trim(); $("text").value = ""; if (text) send(text); });
  $("note").addEventListener("submit", (e) => { e.preventDefault(); const text = $("note-text").value.trim(); $("note-text").value = ""; if (text) send("note " + text); });
  return async () => {
    try {
      const a = await call("/api/drill/list", {});
      let group = "";
      for (const s of a.scenarios) {
        if (s.group !== group) $("drill-list").append(el("h3", group = s.group));
        $("drill-list").append(button(s.title || s.name, () => { $("talk").replaceChildren(); known = []; open = ""; talk("start", { name: s.name }); }), " ");
      }
    } catch (error) { $("drill-list").replaceChildren(el("p", error.message, { class: "problem" })); }
  };
};
