// Steps as they come in the page: columns of differences, unpacked when a step is first looked at.
const scenes = given.scenes.map(() => null);

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
  const from = given.scenes[number], c = unpack(from.data, from.rows, from.columns);
  const starts = from.versions.map((_, v) => v ? c.start.map((s, i) => s + c["start" + v][i]) : c.start);
  const ends = from.versions.map((_, v) => starts[v].map((s, i) => s + c.length[i] + (v ? c["length" + v][i] : 0)));
  const twins = new Map();
  for (let i = 0; i < from.rows; i++) {
    if (c.correlation[i] > 0) twins.set(c.correlation[i], [...(twins.get(c.correlation[i]) || []), i]);
  }
  const path = from.links ? unpack(from.path, from.links, ["kind", "track", "start", "end"]) : null;
  return scenes[number] = { ...from, library: new Set(from.library), c, starts, ends, levels: levelled(from, c, starts), twins, path, number };
}

// Boxes by track, telling and level, in order of time.
function levelled(from, c, starts) {
  const tracks = from.tracks.map(() => from.versions.map(() => []));
  for (let i = 0; i < from.rows; i++) {
    for (let v = 0; v < from.versions.length; v++) {
      if (c.version[i] !== -1 && c.version[i] !== v) continue;
      (tracks[c.track[i]][v][c.depth[i]] ||= []).push(i);
    }
  }
  const ordered = (rows, v) => Int32Array.from(v ? rows.sort((a, b) => starts[v][a] - starts[v][b]) : rows);
  return tracks.map((track) => track.map((levels, v) => Array.from(levels, (rows) => ordered(rows || [], v))));
}

// The place of the first box that ends after a moment.
function firstAfter(rows, ends, t) {
  let low = 0, high = rows ? rows.length : ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[rows ? rows[middle] : middle] <= t) low = middle + 1; else high = middle;
  }
  return low;
}
