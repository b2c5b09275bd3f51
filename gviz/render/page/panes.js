// The panel of the selected node, and the source that goes with it. All text is set as text, never as markup.

/** An HTML element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A text in which `#4` and `event 12` are links: to the node if there is one, and to the moment. */
function linked(text, nodes) {
  return text.split(/(#\d+|\bevent \d+)/).map((piece, place) => {
    const number = piece.replace(/\D+/, "");
    if (place % 2 === 0 || (piece[0] === "#" && !nodes[number])) return piece;
    const target = piece[0] === "#" ? { node: number } : { moment: number };
    const link = element("button", { type: "button", className: "link", textContent: piece });
    Object.assign(link.dataset, target);
    return link;
  });
}

/** Fill the panel with the rows of a node. */
function showPanel(place, title, rows, nodes) {
  const list = element("dl");
  for (const [style, label, text] of rows) {
    list.append(element("dt", { textContent: label }), element("dd", { className: style }, ...linked(text, nodes)));
  }
  place.replaceChildren(element("h3", { textContent: title }), list);
}

/** The source pane: the file in which something happened, its line in view and the exact expression marked. */
class Source {
  constructor(place, name, files) {
    this.place = place;
    this.name = name;
    this.files = files;
    this.file = -1;
    this.lines = [];
    this.marked = [];
  }

  /** Show a mark (`page_data.py`: file, line, column, last line, column behind the end). */
  show(mark) {
    for (const line of this.marked) line.replaceChildren(line.textContent);
    for (const line of this.marked) line.parentElement.classList.remove("here");
    this.marked = [];
    if (!mark) return;
    const [file, first, column, last, end] = mark;
    if (file !== this.file) this.open(file);
    this.name.textContent = `${this.files[file][0]}:${first}`;
    for (let number = first; number <= Math.min(last, this.lines.length); number += 1) {
      const line = this.lines[number - 1];
      line.parentElement.classList.add("here");
      this.marked.push(line);
      if (column < 0) continue;
      const text = line.textContent;
      const from = number === first ? column : text.length - text.trimStart().length;
      const to = number === last ? end : text.length;
      line.replaceChildren(text.slice(0, from), element("mark", { textContent: text.slice(from, to) }), text.slice(to));
    }
    if (this.marked.length) this.reveal(this.marked[0].parentElement);
  }

  open(file) {
    this.file = file;
    const lines = this.files[file][1];
    this.lines = lines.map((text) => element("code", { textContent: text }));
    this.place.replaceChildren(
      ...(lines.length
        ? [element("ol", {}, ...this.lines.map((line) => element("li", {}, line)))]
        : [element("p", { className: "muted", textContent: "The text of this file is not in the recording." })]),
    );
  }

  /** Scroll within the pane only: the page itself never moves while time does. */
  reveal(line) {
    const pane = this.place;
    const top = line.offsetTop;
    if (top < pane.scrollTop + ROW || top > pane.scrollTop + pane.clientHeight - 2 * ROW) {
      pane.scrollTop = top - pane.clientHeight / 2;
    }
    const mark = line.querySelector("mark");
    const right = mark ? mark.offsetLeft + Math.min(mark.offsetWidth, pane.clientWidth / 2) : 0;
    pane.scrollLeft = right > pane.clientWidth ? right - pane.clientWidth + 2 * ROW : 0;
  }
}
