// Times and names as they are written.
function short(text, room) {
  return text.length <= room ? text : room < 3 ? "" : text.slice(0, room - 1) + "…";
}

function seconds(ns, grain) {
  const size = Math.abs(ns), [unit, word] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 || !size ? [1e3, "µs"] : [1, "ns"];
  const digits = grain ? Math.max(0, Math.ceil(-Math.log10(grain / unit) - 1e-9)) : size / unit >= 100 ? 0 : size / unit >= 10 ? 1 : 2;
  return ns ? `${(ns / unit).toFixed(digits)} ${word}` : "0";
}

function lasts(from, v, i) {
  return seconds(from.ends[v][i] - from.starts[v][i]);
}
