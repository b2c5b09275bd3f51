// Ways through time, one for each key of the terminal. Both ends are normal stops.

/** The first of ascending `moments` after `n`, else `otherwise`. */
function after(moments, n, otherwise) {
  const place = lastUpTo(moments, n) + 1;
  return place < moments.length ? moments[place] : otherwise;
}

/** The last of ascending `moments` before `n`, else `otherwise`. */
function before(moments, n, otherwise) {
  const place = lastUpTo(moments, n - 1);
  return place >= 0 ? moments[place] : otherwise;
}

/** One event on (`way` 1) or back (-1), past those in which nothing happens. */
function stepped({ low, high, moves }, n, way) {
  do n += way;
  while (low < n && n < high && moves.silent.includes(n));
  return Math.max(low, Math.min(n, high));
}

/** For every key the moment it leads to from moment `n`, with node `selected`. */
function movesOf(page) {
  const { low, high, moves, nodes } = page;
  const eventsOf = (node) => (nodes[node] ? nodes[node].events : []);
  return {
    s: (n) => stepped(page, n, 1),
    S: (n) => stepped(page, n, -1),
    n: (n) => after(moves.nodes, n, high),
    N: (n) => before(moves.nodes, n, low),
    f: (n) => valueAt(moves.finish, n),
    F: (n) => valueAt(moves.reverse_finish, n),
    c: (n) => after(moves.stops, n, high),
    C: (n) => before(moves.stops, n, low),
    t: (n, selected) => after(eventsOf(selected), n, n),
    T: (n, selected) => before(eventsOf(selected), n, n),
    "}": (n) => after(moves.phases, n, high),
    "{": (n) => before(moves.phases, n, low),
    "<": () => low,
    ">": () => high,
    Home: () => low,
    End: () => high,
    ArrowRight: (n) => stepped(page, n, 1),
    ArrowLeft: (n) => stepped(page, n, -1),
  };
}
