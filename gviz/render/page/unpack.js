// The data of the page: inflated, and its changes sorted by cell so that any moment is found by binary search.

/** The page's data (`page_data.py` says what is in it), from deflated JSON in base64. */
async function unpacked(packed) {
  const letters = atob(packed);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) bytes[place] = letters.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** The place of the last of ascending `numbers` up to `n`, within `from..to`; `from - 1` if there is none. */
function lastUpTo(numbers, n, from = 0, to = numbers.length) {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= n) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The value at moment `n` of a function that keeps its values for a while. */
function valueAt([moments, values], n) {
  return values[lastUpTo(moments, n)];
}

/** Changes by cell: those of cell `c` are `starts[c]` to `starts[c + 1]` of `moments` and `texts`, in order of time. */
class Cells {
  constructor({ first, at, counts, cells: steps, texts }, count) {
    const cells = new Int32Array(steps.length);
    this.starts = new Int32Array(count + 1);
    let change = 0;
    for (const many of counts) {
      let cell = 0;
      for (const end = change + many; change < end; change += 1) {
        cell += steps[change];
        cells[change] = cell;
        this.starts[cell + 1] += 1;
      }
    }
    for (let cell = 0; cell < count; cell += 1) this.starts[cell + 1] += this.starts[cell];
    this.moments = new Int32Array(cells.length);
    this.texts = new Int32Array(cells.length);
    const next = this.starts.slice();
    let fresh = first;
    let moment = 0;
    change = 0;
    at.forEach((distance, group) => {
      moment += distance;
      for (const end = change + counts[group]; change < end; change += 1) {
        const place = next[cells[change]]++;
        this.moments[place] = moment;
        this.texts[place] = texts[change] ? texts[change] - 1 : fresh++;
      }
    });
  }

  /** The number of the text that a cell shows at moment `n`; 0 is the empty text. */
  at(cell, n) {
    const start = this.starts[cell];
    const place = lastUpTo(this.moments, n, start, this.starts[cell + 1]);
    return place < start ? 0 : this.texts[place];
  }
}
