// Sliders that look a replay up: every position of all of them together was replayed when the report was made.
const given = JSON.parse(document.getElementById("sl-data").textContent);
const group = document.getElementById("sl"), said = document.getElementById("sl-step"), bar = document.getElementById("sl-bar");
const sliders = [...group.querySelectorAll("input")];

function show() {
  let at = 0;
  for (const slider of sliders) {
    const place = Number(slider.value), word = given.words[place];
    at = at * given.words.length + place;
    slider.setAttribute("aria-valuetext", word);
    slider.nextElementSibling.textContent = word;
  }
  const [words, share] = given.steps[at];
  said.textContent = words;
  bar.lastElementChild.setAttribute("width", 400 * share);
}

for (const slider of sliders) slider.addEventListener("input", show);
group.hidden = said.hidden = false;
bar.removeAttribute("hidden");
show();
