// Where one has looked: each leap leaves a mark, and a click on a mark goes back.
const MOST_MARKS = 7;

function go(a, b, word) {
  const margin = (b - a) * 0.06 + LEAST_NS;
  state.trail = [...state.trail.slice(-MOST_MARKS), { word: word || seconds(b - a), view: [a - margin, b + margin] }];
  tellTrail();
  glide(a - margin, b + margin);
}

function back() {
  state.trail.pop();
  tellTrail();
  const last = state.trail.at(-1);
  if (last) glide(...last.view); else fit();
}

function tellTrail() {
  const marks = [{ word: "all", view: null }, ...state.trail];
  $("tl-trail").hidden = marks.length < 2;
  $("tl-trail").replaceChildren(...marks.map(({ word, view }, at) => pressable(short(word, 40), () => {
    state.trail = state.trail.slice(0, at);
    tellTrail();
    if (view) glide(...view); else fit();
  })));
}
