// The tests of a comparison, the same as in pagelab compare (crates/analysis: rank, signed_rank, comparison::test):
// p-values from exact distributions where these are small enough, intervals of the Hodges-Lehmann estimate.
const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => {
  const list = sorted(values), middle = list.length >> 1;
  return list.length % 2 ? list[middle] : (list[middle - 1] + list[middle]) / 2;
};
const sum = (values) => values.reduce((all, value) => all + value, 0);

// P(|Z| ≥ z): the series of the error function near 0, otherwise its continued fraction.
const twoSidedNormal = (z) => {
  const x = z / Math.SQRT2;
  if (x < 2) {
    let term = x, all = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(all); n += 1) {
      term *= -x * x / n;
      all += term / (2 * n + 1);
    }
    return 1 - 2 / Math.sqrt(Math.PI) * all;
  }
  let fraction = x;
  for (let n = 100; n > 0; n -= 1) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / fraction / Math.sqrt(Math.PI);
};
// The z for which P(|Z| ≥ z) = level.
const reach = (level) => {
  let low = 0, high = 40;
  for (let n = 0; n < 200; n += 1) {
    const middle = (low + high) / 2;
    if (twoSidedNormal(middle) > level) low = middle; else high = middle;
  }
  return low;
};

// Twice the mid-rank of each value, an integer.
const midRanks = (all) => {
  const order = all.map((_, i) => i).sort((i, j) => all[i] - all[j]), ranks = new Array(all.length);
  for (let start = 0, end; start < order.length; start = end) {
    for (end = start; end < order.length && all[order[end]] === all[order[start]]; end += 1);
    for (let at = start; at < end; at += 1) ranks[order[at]] = start + 1 + end;
  }
  return ranks;
};
// For each sum, the number of choices of n ranks that have it.
const choices = (ranks, n) => {
  const width = sum(ranks) + 1, ways = new Float64Array((n + 1) * width);
  ways[0] = 1;
  ranks.forEach((rank, seen) => {
    for (let k = Math.min(n, seen + 1); k > 0; k -= 1) {
      for (let at = width - 1; at >= rank; at -= 1) ways[k * width + at] += ways[(k - 1) * width + at - rank];
    }
  });
  return ways.subarray(n * width);
};
// For each sum, the number of sign assignments whose positive ranks have it.
const signSums = (ranks) => {
  const ways = new Float64Array(sum(ranks) + 1);
  ways[0] = 1;
  for (const rank of ranks) for (let at = ways.length - 1; at >= rank; at -= 1) ways[at] += ways[at - rank];
  return ways;
};
const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);

const mannWhitney = (a, b) => {
  const ranks = midRanks([...a, ...b]), n = a.length, m = b.length, count = n + m;
  const observed = sum(ranks.slice(0, n));
  if (count <= limits.exactRanks) {
    const ways = choices(ranks, n), total = sum(ranks), far = Math.abs(observed * count - n * total);
    let all = 0, extreme = 0;
    ways.forEach((way, at) => { all += way; if (Math.abs(at * count - n * total) >= far) extreme += way; });
    return Math.min(extreme / all, 1);
  }
  const sizes = new Map();
  for (const value of [...a, ...b]) sizes.set(value, (sizes.get(value) || 0) + 1);
  const ties = sum([...sizes.values()].map((t) => t * t * t - t));
  const variance = n * m / 12 * (count + 1 - ties / (count * (count - 1)));
  if (variance <= 0) return 1;
  const distance = Math.abs(observed / 2 - n * (count + 1) / 2) - 0.5;
  return Math.min(twoSidedNormal(Math.max(distance, 0) / Math.sqrt(variance)), 1);
};
const leastRanksP = (n, m) => Math.min(2 / upTo(m).reduce((ways, i) => ways * (n + i) / i, 1), 1);
const signTest = (values, figure) => {
  const above = values.filter((v) => v > figure).length, below = values.filter((v) => v < figure).length;
  const n = above + below;
  let term = 0.5 ** n, tail = 0;
  for (let i = 0; i <= Math.min(above, below); i += 1) { tail += term; term *= (n - i) / (i + 1); }
  return Math.min(2 * tail, 1);
};
const leastSignP = (n) => Math.min(2 * 0.5 ** n, 1);
const signedRank = (all) => {
  const differences = all.filter((d) => d !== 0), ranks = midRanks(differences.map(Math.abs)), total = sum(ranks);
  const above = sum(ranks.filter((_, i) => differences[i] > 0)), lower = Math.min(above, total - above);
  if (ranks.length <= limits.exactPairs) {
    const ways = signSums(ranks);
    return Math.min(2 * sum(ways.subarray(0, lower + 1)) / sum(ways), 1);
  }
  const variance = sum(ranks.map((rank) => rank * rank)) / 4;
  return twoSidedNormal(Math.max(total / 2 - lower - 1, 0) / Math.sqrt(variance));
};

// The last index up to which the cumulative share of the ways is at most half of the level; -1: none.
const leftOutOf = (ways, level) => {
  const all = sum(ways);
  let within = 0;
  for (let tail = 0; within < ways.length; within += 1) {
    tail += ways[within];
    if (tail > all * level / 2) break;
  }
  return within - 1;
};
// The number of effects that an interval leaves out at each end; -1: too few values for an interval.
const leftOut = {
  ranks(n, m, level) {
    if (n + m > limits.exactRanks) {
      const deviation = Math.sqrt(n * m * (n + m + 1) / 12);
      return Math.max(Math.floor(n * m / 2 - reach(level) * deviation), 0);
    }
    return leftOutOf(choices(upTo(n + m), n).subarray(n * (n + 1) / 2), level);
  },
  pairs(n, _, level) {
    if (n > limits.exactPairs) return Math.floor(n * (n + 1) / 4 - reach(level) * Math.sqrt(n * (n + 1) * (2 * n + 1) / 24));
    return leftOutOf(signSums(upTo(n)), level);
  },
  sign(n, level) {
    let chosen = 0, tail = 0;
    for (let k = 0; k <= n >> 1; k += 1) {
      tail += Math.exp(chosen - n * Math.LN2);
      if (tail > level / 2) return k - 1;
      chosen += Math.log((n - k) / (k + 1));
    }
    return -1;
  },
};

// Holm's correction for multiple comparisons, in the order of the p-values.
const holm = (p) => {
  const order = p.map((_, i) => i).sort((i, j) => p[i] - p[j]), corrected = new Array(p.length);
  let worst = 0;
  order.forEach((i, step) => { worst = Math.max(worst, Math.min(p[i] * (p.length - step), 1)); corrected[i] = worst; });
  return corrected;
};

// xoshiro256** of crates/reference/src/rng.rs, in halves of 32 bits.
const generator = (seed) => {
  const word = (v) => BigInt.asUintN(64, v);
  let x = BigInt(seed), high = 0, low = 0;
  let [ah, al, bh, bl, ch, cl, dh, dl] = upTo(4).flatMap(() => {
    x = word(x + 0x9e3779b97f4a7c15n);
    let z = word((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = word((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    z ^= z >> 31n;
    return [Number(z >> 32n), Number(z & 0xffffffffn)];
  });
  const step = () => {
    const five = bl * 5, fh = (bh * 5 + Math.floor(five / 2 ** 32)) >>> 0, fl = five >>> 0;
    const rh = ((fh << 7) | (fl >>> 25)) >>> 0, nine = (((fl << 7) | (fh >>> 25)) >>> 0) * 9;
    high = (rh * 9 + Math.floor(nine / 2 ** 32)) >>> 0;
    low = nine >>> 0;
    const th = (bh << 17) | (bl >>> 15), tl = bl << 17;
    ch ^= ah; cl ^= al; dh ^= bh; dl ^= bl;
    bh = (bh ^ ch) >>> 0; bl = (bl ^ cl) >>> 0; ah ^= dh; al ^= dl;
    ch ^= th; cl ^= tl;
    [dh, dl] = [(dl << 13) | (dh >>> 19), (dh << 13) | (dl >>> 19)];
  };
  const unit = () => { step(); return (high * 2 ** 21 + (low >>> 11)) * 2 ** -53; };
  // Without the rejection of a biased number, whose chance is bound / 2^64.
  const below = (bound) => { step(); return Math.floor((high * bound + Math.floor(low * bound / 2 ** 32)) / 2 ** 32); };
  const normal = () => { const radius = Math.sqrt(-2 * Math.log1p(-unit())); return radius * Math.cos(2 * Math.PI * unit()); };
  return { below, normal };
};
