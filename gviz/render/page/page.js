// The page itself: one position in time, one selected node, and everything else follows from the two.

const find = (id) => document.getElementById(id);
const page = await unpacked(find("data").textContent);
const moves = movesOf(page);
const table = new EventTable(find("events"), page);
const source = new Source(find("source"), find("file"), page.files);
const graphs = page.graphs.map(() => []);
const boxed = new Set(page.graphs.flatMap(({ views }) => views.flatMap(({ boxes }) => boxes.flatMap(([, node, , , , , , , , , ...inside]) => [node, ...inside]))));
const seen = (node) => node && (!page.part || boxed.has(node)); // of a part that was asked for, what lies in it
const numbers = Object.keys(page.nodes).map(Number).filter(seen);

let now = page.start;
let selected = 0;
let shown = null;
// The names of the views from the first to the one in sight.
let opened = [];
let zoom = 0;
let whole = false;
let timer = 0;
let still = 0;
let sought = "";

/** The graph of a moment, drawn when it is first asked for. */
function graphAt(n) {
  const place = Math.max(0, lastUpTo(page.graphs.map((graph) => graph.low), n));
  const data = page.graphs[place];
  const view = viewOf(data);
  graphs[place][view] ??= new Graph(data, view, graphs[place].find(Boolean)?.cells, page.strings, choose, open);
  return graphs[place][view];
}

/** The view of an iteration in which is open what is open in the one in sight, as far as it has that. */
function viewOf({ views }) {
  let view = 0;
  for (const name of opened) {
    const next = views.findIndex((each) => each.parent === view && each.name === name);
    if (next < 0) return view;
    view = next;
  }
  return view;
}

/** Show another view of the graph in sight: a box opened or closed; and look at the node if one was clicked. */
function open(view, node = selected) {
  const { views } = shown.data;
  opened = [];
  for (let each = view; each > 0; each = views[each].parent) opened.unshift(views[each].name);
  selected = Number(node);
  show();
}

/** Open the box in which the selected node is (`way` 1), or close the last one that was opened (-1). */
function unfold(way) {
  const box = shown.boxes.find((each) => each.opens >= 0 && (each.node === selected || each.inside.has(selected)));
  if (way > 0 && box) open(box.opens);
  if (way < 0 && shown.view.parent >= 0) open(shown.view.parent);
}

/** The words for a moment, as a sentence. */
function sentence(n) {
  const { events, strings, nodes, low } = page;
  const actor = events.actors[n - low];
  const phase = strings[valueAt(events.phases, n)];
  const parts = [`event ${n} of ${page.count}`, phase, actor ? nodes[actor].title : ""].filter(Boolean);
  return `${parts.join(", ")}: ${strings[events.texts[n - low]]}.`;
}

/** Go to a moment, and look at the node that acts there. */
function go(n) {
  now = Math.max(page.low, Math.min(n, page.high));
  selected = actorBy(now) || selected;
  source.show(page.marks[valueAt(page.events.marks, now)]);
  show();
}

/** The node that acts at a moment, else the one that acted last; 0 before any has. */
function actorBy(n) {
  let place = n - page.low;
  while (place >= 0 && !seen(page.events.actors[place])) place -= 1;
  return page.events.actors[place] || 0;
}

/** Look at a node; the time does not move. */
function choose(node) {
  selected = Number(node);
  source.show(page.marks[page.nodes[selected].mark]);
  show();
}

/** Say what of the trace, and of the graph in sight, the page leaves out. */
function tell(notes) {
  find("notes").textContent = notes.join("\n");
  find("notes").hidden = !notes.length;
}

/** Bring the whole page to the present moment. */
function show() {
  const graph = graphAt(now);
  if (graph !== shown) {
    find("graph").replaceChildren(graph.svg);
    shown = graph;
    tell([...page.notes, ...graph.data.notes]);
    find("iteration").value = page.graphs.indexOf(graph.data);
    resize();
  }
  graph.show(now);
  const box = graph.select(selected);
  if (box) reveal(box.group);
  const node = page.nodes[selected];
  showPanel(find("panel"), node ? node.title : "No node yet", panelRows(graph), page.nodes);
  table.show(now);
  find("slider").value = now;
  find("slider").setAttribute("aria-valuetext", `event ${now} of ${page.count}`);
  find("said").textContent = sentence(now);
  remember();
}

/** What is known of the selected node: now, or when the last iteration that has it ended. */
function panelRows(graph) {
  const rows = graph.panel(selected, now);
  if (rows.length) return rows;
  const older = page.graphs.findLast((each) => each.high < now && each.panels.some(([node]) => node === selected));
  if (older) return [["muted", "", `as it was at event ${older.high}`], ...graphAt(older.high).panel(selected, older.high)];
  return [["muted", "", selected ? "not in this part of the recording" : "s goes on to the first event, n to the first node"]];
}

/** Keep the address in step, so that it can be sent to somebody; once time stands still, as browsers count such calls. */
function remember() {
  clearTimeout(still);
  still = setTimeout(() => {
    try {
      history.replaceState(null, "", `#e${now}${selected ? `n${selected}` : ""}`);
    } catch {
      // inside the frame of a notebook there is no address to keep
    }
  }, 250);
}

/** Go where the address says: `#12` or `#e12`, `#n4`, `#e12n4`. */
function follow() {
  const moment = /^#e?(\d+)/.exec(location.hash);
  const node = /n(\d+)/.exec(location.hash);
  go(moment ? Number(moment[1]) : now);
  if (node && page.nodes[node[1]]) choose(node[1]);
}

/** Scroll the graph, and nothing else, until a box is in sight. */
function reveal(group) {
  const pane = find("graph").getBoundingClientRect();
  const box = group.getBoundingClientRect();
  const [dx, dy] = [outside(box.left, box.right, pane.left, pane.right), outside(box.top, box.bottom, pane.top, pane.bottom)];
  if (dx || dy) find("graph").scrollBy(dx, dy);
}

/** How far a stretch must move to lie in another; to its middle, so that steps nearby do not scroll again. */
function outside(low, high, from, to) {
  return low >= from && high <= to ? 0 : (low + high - from - to) / 2;
}

const READABLE = 0.55;
const AT_EASE = 0.9;
const LARGEST = 1.4;

/** Size the drawing: times `zoom`; without one (0) to fit its pane, or its width, if it can be read then, else at ease. The `whole` graph always fits. */
function resize() {
  const pane = find("graph");
  const across = Math.min(LARGEST, (pane.clientWidth - 8) / shown.width);
  const all = Math.min(across, (pane.clientHeight - 8) / shown.height);
  const readable = all >= READABLE ? all : across >= READABLE ? across : AT_EASE;
  const scale = zoom || (whole ? all : readable);
  shown.svg.setAttribute("width", shown.width * scale);
  shown.svg.setAttribute("height", shown.height * scale);
}

function enlarge(factor) {
  const width = Number(shown.svg.getAttribute("width"));
  zoom = Math.max(0.02, Math.min((width / shown.width) * factor, 4));
  resize();
  show();
}

/** Show the whole graph; again, and it is as large as it can be read. */
function fit() {
  whole = Boolean(zoom) || !whole;
  zoom = 0;
  // scroll bars go away, and there is more room without them
  shown.svg.setAttribute("width", 1);
  shown.svg.setAttribute("height", 1);
  resize();
  show();
}

function play() {
  if (timer) return pause();
  if (now === page.high) go(page.low);
  find("said").setAttribute("aria-live", "off"); // nobody can listen that fast
  find("play").setAttribute("aria-pressed", "true");
  timer = setInterval(() => (now === page.high ? pause() : go(moves.s(now))), 1000 / Number(find("speed").value));
}

function pause() {
  clearInterval(timer);
  timer = 0;
  find("said").setAttribute("aria-live", "polite");
  find("play").setAttribute("aria-pressed", "false");
}

/** Select the next node (in the order of their making) that fits the text, or the one before. */
function search(step, text = sought) {
  sought = text;
  const moment = /^@(\d+)$/.exec(text);
  if (moment) return go(Number(moment[1]));
  const wanted = text.toLowerCase();
  const matches = numbers.filter((node) => wanted && fits(page.nodes[node], node, wanted));
  const place = matches.findIndex((node) => node >= selected + (step > 0 ? 1 : 0));
  const next = step > 0 ? place : (place < 0 ? matches.length : place) - 1;
  const found = matches.at(next < 0 && step > 0 ? 0 : next);
  find("found").textContent = matches.length ? `${matches.indexOf(found) + 1} of ${matches.length}` : wanted && "nothing fits";
  if (found !== undefined) choose(found);
}

function fits(node, number, wanted) {
  if (/^#?\d+$/.test(wanted)) return number === Number(wanted.replace("#", ""));
  const mark = page.marks[node.mark];
  const where = mark ? `${page.files[mark[0]][0]}:${mark[1]}` : "";
  return `${node.title}\n${node.op}\n${node.scope}\n${where}`.toLowerCase().includes(wanted);
}

/** Select the node so many places away in the order of making. */
function neighbour(steps) {
  const place = Math.max(0, Math.min(numbers.indexOf(selected) + steps, numbers.length - 1));
  if (numbers.length) choose(numbers[place]);
}

/** Select an input or a user of the selected node. */
function relative(kin) {
  const next = page.nodes[selected]?.[kin].find((node) => page.nodes[node]);
  if (next) choose(next);
}

const THEMES = ["auto", "light", "dark"];

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
  find("theme").textContent = `theme: ${root.dataset.theme}`;
}

/** Open one of the dialogs, or close it. */
function toggle(dialog) {
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

const KEYS = {
  " ": play,
  "/": () => find("search").select(),
  ",": () => search(1),
  ".": () => search(-1),
  "?": () => toggle(find("help")),
  w: () => toggle(find("words")),
  j: () => neighbour(1),
  k: () => neighbour(-1),
  g: () => neighbour(-numbers.length),
  G: () => neighbour(numbers.length),
  h: () => relative("inputs"),
  l: () => relative("users"),
  "+": () => enlarge(1.25),
  "=": () => enlarge(1.25),
  "-": () => enlarge(0.8),
  z: fit,
  o: () => unfold(1),
  O: () => unfold(-1),
  Escape: () => find("search").blur(),
};

/** Carry out what a key means; whether it means anything. */
function press(key) {
  if (moves[key]) {
    pause();
    go(moves[key](now, selected));
  } else if (KEYS[key]) KEYS[key]();
  else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
  const { tagName, type } = event.target;
  if (tagName === "INPUT" && type === "search") {
    if (event.key === "Enter") search(event.shiftKey ? -1 : 1, event.target.value.trim());
    if (event.key === "Escape") {
      event.preventDefault(); // which would empty it
      event.target.blur();
    }
    return;
  }
  if (tagName === "SELECT") return;
  if (event.key === "Enter" && event.target.closest?.("g.box")) return unfold(1);
  if (tagName === "BUTTON" && (event.key === " " || event.key === "Enter")) return;
  if (event.key.startsWith("Arrow") && (type === "range" || event.target.closest?.(".scrolls"))) return;
  if (press(event.key)) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const { key, moment, node } = event.target.closest("button")?.dataset ?? {};
  if (key) press(key);
  else if (moment) go(Number(moment));
  else if (node) choose(node);
});

find("slider").min = page.low;
find("slider").max = page.high;
find("slider").addEventListener("input", (event) => {
  pause();
  go(Number(event.target.value));
});
find("speed").addEventListener("change", () => timer && (pause(), play()));
find("search").addEventListener("input", () => (find("found").textContent = ""));
find("iteration").append(...page.graphs.map((graph, place) => new Option(`iteration ${graph.nr}`, place)));
find("iteration").hidden = page.graphs.length < 2;
find("iteration").addEventListener("change", (event) => go(page.graphs[event.target.value].low));
find("theme").textContent = `theme: ${document.documentElement.dataset.theme}`;
find("theme").addEventListener("click", switchTheme);
addEventListener("hashchange", follow);
addEventListener("resize", () => {
  resize();
  show();
});
follow();
document.body.dataset.ready = Math.round(performance.now()); // milliseconds since the page was asked for
