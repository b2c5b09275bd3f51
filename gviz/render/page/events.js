// The table of events: the whole story in words, for screen readers and for everybody else.

const WINDOW = 100;

class EventTable {
  /** Fills the body of `table`; only a window of rows around the present is in it, and it says of how many. */
  constructor(table, page) {
    this.table = table;
    this.body = table.tBodies[0];
    this.page = page;
    this.first = 0;
    this.rows = [];
    table.setAttribute("aria-rowcount", page.high - page.low + 2);
  }

  show(n) {
    const { low, high } = this.page;
    if (!this.rows.length || n < this.first || n >= this.first + this.rows.length) {
      this.first = Math.max(low, Math.min(n - WINDOW / 2, high - WINDOW));
      const last = Math.min(this.first + WINDOW, high);
      this.rows = [];
      for (let each = this.first; each <= last; each += 1) this.rows.push(this.row(each));
      this.body.replaceChildren(...this.rows);
    }
    if (this.current) this.current.removeAttribute("aria-current");
    this.current = this.rows[n - this.first];
    this.current.setAttribute("aria-current", "step");
    const box = this.table.parentElement;
    const top = this.current.offsetTop - box.scrollTop;
    const head = this.table.tHead.offsetHeight;
    if (top < head || top > box.clientHeight - 2 * head) box.scrollTop = this.current.offsetTop - box.clientHeight / 2;
  }

  row(n) {
    const { low, events, strings, nodes } = this.page;
    const actor = events.actors[n - low];
    const link = element("button", { type: "button", className: "link", textContent: n });
    link.dataset.moment = n;
    const row = element(
      "tr",
      {},
      element("th", { scope: "row" }, link),
      element("td", { textContent: strings[valueAt(events.phases, n)] }),
      element("td", { textContent: actor ? nodes[actor].title : "" }),
      element("td", { textContent: strings[events.texts[n - low]] }),
    );
    row.setAttribute("aria-rowindex", n - low + 2);
    return row;
  }
}
