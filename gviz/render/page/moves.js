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

/** For every key the moment it leads to from moment `n`, with node `selected`. */
function movesOf({ low, high, moves, nodes }) {
  const eventsOf = (node) => (nodes[node] ? nodes[node].events : []);
  return {
    s: (n) => Math.min(n + 1, high),
    S: (n) => Math.max(n - 1, low),
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
    ArrowRight: (n) => Math.min(n + 1, high),
    ArrowLeft: (n) => Math.max(n - 1, low),
  };
}
