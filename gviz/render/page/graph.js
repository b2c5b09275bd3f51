// The drawing of one iteration: made once, then only the texts and classes that changed are written.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 15;
const TITLE = "bold 11px Helvetica, Arial, sans-serif";
const TEXT = "11px Helvetica, Arial, sans-serif";
const WORD = "9px Helvetica, Arial, sans-serif";
const GAP = 4;
const BORDER = 3;
const EDGE = 9;
const LINE = 13;

/** An SVG element with attributes and text. */
function drawn(name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");

/** The width of a text in a font of `page.css`. */
function wide(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

/** Write a text only where it is another one: what stays costs the browser nothing. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** An arrow head: its tip, at the end of a line or, for gradients, at the beginning. */
function head(id, path, size) {
  const box = { id, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: size, markerHeight: size, markerUnits: "userSpaceOnUse" };
  const marker = drawn("marker", { ...box, orient: "auto-start-reverse" });
  marker.append(drawn("path", { d: path }));
  return marker;
}

/** The frame of an open module, behind what it computed; a click on its title closes it again. */
function framed([title, x, y, width, height, closes], view) {
  const group = drawn("g", { transform: `translate(${x} ${y})`, class: "frame" });
  const name = drawn("text", { x: EDGE, y: ROW }, closes < 0 ? title : `[–] ${title}`);
  group.append(drawn("rect", { width, height, rx: 7 }), name);
  if (closes >= 0) {
    name.setAttribute("class", "closes");
    name.addEventListener("click", () => view(closes));
  }
  return group;
}

class Graph {
  /** Draws one view of a graph of the page's data; a click on a box calls `choose(node)`, or `open(view)` if it opens. */
  constructor(data, number, cells, strings, choose, open) {
    const view = data.views[number];
    this.data = data;
    this.number = number;
    this.view = view;
    this.strings = strings;
    this.rowsOfPanels = new Map();
    let cell = data.cells;
    for (const [node, rows] of data.panels) {
      this.rowsOfPanels.set(node, [cell, cell + rows]);
      cell += rows;
    }
    this.cells = cells ?? new Cells(data.changes, cell);
    const [width, height] = view.size;
    this.width = width + 20;
    this.height = height + 20;
    this.svg = drawn("svg", { viewBox: `-10 -10 ${this.width} ${this.height}`, role: "group" });
    this.lines = view.lines.map((line) => this.line(line));
    this.boxes = view.boxes.map((box) => this.box(box, choose, open));
    const heads = drawn("defs", {});
    const triangle = "M0 1 10 5 0 9z";
    heads.append(head("arrow", triangle, 9), head("hollow", triangle, 10), head("back", triangle, 11));
    this.svg.append(heads, ...view.frames.map((frame) => framed(frame, open)), ...this.lines.map((line) => line.group), ...this.boxes.map((box) => box.group));
  }

  line([cell, kind, , , path, x, y]) {
    const group = drawn("g", {});
    const way = drawn("path", { d: path, class: "way" });
    const label = drawn("text", { class: "label" });
    group.append(way, ...(x === undefined ? [] : [label]));
    return { cell, kind, group, label, x, y, shown: -1 };
  }

  box([cell, node, role, title, height, x, y, width, full, opens, ...inside], choose, open) {
    const group = drawn("g", { transform: `translate(${x} ${y})`, tabindex: -1, role: "button", "data-node": node });
    const round = role === "op" || role === "root" ? 0 : 7;
    // the second border is inside: lines end at the first one
    const inset = role === "root" ? BORDER : 0;
    if (inset) group.append(drawn("rect", { width, height: full, class: "outer" }));
    group.append(drawn("rect", { x: inset, y: inset, width: width - 2 * inset, height: full - 2 * inset, rx: round, class: "face" }));
    const middle = height === 1;
    const head = middle
      ? drawn("text", { x: width / 2, y: full / 2 + 4, class: "title middle" }, title)
      : drawn("text", { x: EDGE, y: ROW + 1, class: "title" }, title);
    const status = drawn("text", { x: width - EDGE, y: ROW + 1, class: "status" });
    group.append(head, status);
    const rows = [];
    for (let row = 1; row < height; row += 1) {
      const baseline = (row + 1) * ROW + 1;
      const label = drawn("text", { x: EDGE, y: baseline, class: "muted" });
      const text = drawn("text", { x: width - EDGE, y: baseline, class: "end" });
      const more = drawn("text", { x: width - EDGE, y: baseline });
      group.append(label, text, more);
      rows.push({ label, text, more, left: EDGE, right: width - EDGE, shown: -1 });
    }
    group.addEventListener("click", () => (opens < 0 ? choose(node) : open(opens, node)));
    // the room for a word next to the title, which has the mark of the current node before it
    const named = wide(`► ${title}`, TITLE);
    const room = (middle ? (width - named) / 2 : width - EDGE - named) - EDGE - GAP;
    return { cell, opens, node, role, title, room, inside: new Set(inside), group, head, status, rows, shown: -1 };
  }

  /** Write what has changed since the moment shown last. */
  show(n) {
    for (const box of this.boxes) {
      const { cell } = box;
      const said = this.cells.at(cell, n);
      if (said !== box.shown) this.dress(box, said);
      box.rows.forEach((row, number) => {
        const text = this.cells.at(cell + number + 1, n);
        if (text !== row.shown) this.fill(row, text);
      });
    }
    for (const line of this.lines) {
      const said = this.cells.at(line.cell, n);
      if (said !== line.shown) {
        line.shown = said;
        const [states, ...label] = this.strings[said].split("\t");
        line.group.setAttribute("class", `line ${line.kind} ${states}`);
        if (line.x !== undefined) this.letter(line, label.filter(Boolean));
      }
    }
  }

  /** Write the lines of a label around its middle. */
  letter(line, texts) {
    const top = line.y + 4 - (LINE * (texts.length - 1)) / 2;
    line.label.replaceChildren(...texts.map((text, row) => drawn("tspan", { x: line.x, y: top + row * LINE }, text)));
  }

  dress(box, said) {
    box.shown = said;
    const [states, status] = this.strings[said].split("\t");
    box.states = states.split(" ").filter(Boolean);
    box.group.setAttribute("class", ["box", `role-${box.role}`, ...box.states.map((state) => `state-${state}`), box.opens < 0 ? "" : "opens"].join(" ").trim());
    write(box.status, status || "");
    box.status.setAttribute("visibility", wide(status || "", WORD) > box.room ? "hidden" : "visible");
    write(box.head, box.states.includes("current") ? `► ${box.title}` : box.title);
  }

  fill(row, said) {
    row.shown = said;
    // another row may share the line: the first one is at the left then, and the other one at the right
    const [style, label, text, ending, ...ends] = said ? this.strings[said].split("\t") : ["", "", ""];
    const alone = label && ending === undefined;
    write(row.label, label);
    write(row.text, text);
    write(row.more, ends.filter(Boolean).join(" "));
    row.text.setAttribute("class", alone ? `end ${style}` : style);
    row.text.setAttribute("x", alone ? row.right : label ? row.left + wide(`${label} `, TEXT) : row.left);
    row.more.setAttribute("class", `end ${ending || ""}`.trim());
  }

  /** The rows of a node's panel at moment `n`: style, label and text of each. */
  panel(node, n) {
    const [start, end] = this.rowsOfPanels.get(node) || [0, 0];
    const rows = [];
    for (let cell = start; cell < end; cell += 1) {
      const said = this.cells.at(cell, n);
      if (said) rows.push(this.strings[said].split("\t"));
    }
    return rows;
  }

  /** Mark the boxes of the selected node; only they can be reached with the tab key. Returns the node's own box. */
  select(node) {
    let own = null;
    for (const box of this.boxes) {
      const chosen = box.node === node || box.inside.has(node);
      box.group.classList.toggle("selected", chosen);
      if (box.group.getAttribute("tabindex") !== (chosen ? "0" : "-1")) box.group.setAttribute("tabindex", chosen ? 0 : -1);
      if (!chosen) continue;
      const words = box.rows.map((row) => `${row.label.textContent} ${row.text.textContent} ${row.more.textContent}`.trim());
      box.group.setAttribute("aria-label", [box.title, box.status.textContent, ...words].filter(Boolean).join(", "));
      if (box.role !== "chip") own = box;
    }
    return own;
  }
}
