"use strict";
// The drill's tab: what is said, and below it the form of what is asked now. Whatever is clicked is sent as the text one would type.
const stallwiseDrill = ({ $, el, call }) => {
  let session = "";
  const button = (text, act, props) => { const b = el("button", text, { type: "button", ...(props || {}) }); b.addEventListener("click", act); return b; };
  const send = (text) => talk("reply", { session, text });
  const row = (...nodes) => { const r = el("div", null, { class: "line" }); r.append(...nodes); return r; };

  const papers = (form) => [
    el("p", "Papers cost minutes of the incident. Or ask below in your own words."),
    ...form.menu.map((m, n) => button((m.have ? "again: " : "") + m.what + " · " + (m.have ? 0 : m.minutes) + " min", () => send("ask " + (n + 1)))),
    button("I have seen enough: commit", () => send("commit"), { class: "main" }),
  ];
  const cause = (form) => {
    const sure = form.lines.map((text, n) => {
      const input = el("input", null, { type: "number", min: 0, max: 100, step: 5, id: "sure" + n, placeholder: "%" });
      return [input, row(input, el("label", text, { for: "sure" + n }))];
    });
    const given = () => sure.map(([input], n) => [n + 1, Number(input.value)]).filter(([, p]) => p > 0);
    return [...sure.map(([, r]) => r), button("Commit to this", () => send(given().map(([n, p]) => n + " " + p + "%").join("; ") || " "), { class: "main" })];
  };
  const one = (form) => form.lines.map((text, n) => button(text, () => send(String(n + 1)), { class: "choice" }));
  const second = (form) => [button("No second fault", () => send("none"), { class: "choice" }), ...one(form)];
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
    return [...boxes.map(([, r]) => r), button("That is what I said", () => send(boxes.map(([b], n) => b.checked ? n + 1 : 0).filter(Boolean).join(" ") || "none"), { class: "main" })];
  };
  const forms = { papers, cause, second, fixes: order, falsifier: one, "not-first": one, ticks };
  const skippable = ["cause", "second", "number", "fixes", "falsifier", "not-first", "tell"];

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
      const said = el("p", a.says);
      $("talk").append(said);
      offer(a.form);
      $("reply").hidden = Boolean(a.over);
      said.scrollIntoView({ block: "nearest" });
    } catch (error) { $("talk").append(el("p", error.message, { class: "problem" })); }
  };
  $("reply").addEventListener("submit", (e) => { e.preventDefault(); const text = $("text").value.trim(); $("text").value = ""; if (text) send(text); });
  return async () => {
    try {
      const a = await call("/api/drill/list", {});
      for (const s of a.scenarios) $("drill-list").append(button(s.title || s.name, () => { $("talk").replaceChildren(); talk("start", { name: s.name }); }), " ");
    } catch (error) { $("drill-list").replaceChildren(el("p", error.message, { class: "problem" })); }
  };
};
