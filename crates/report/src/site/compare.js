// Compares two runs metric by metric, by the rules of crates/analysis/src/comparison.rs, from the figures in this page.
const data = JSON.parse(byId("data").textContent), { limits, verdicts } = data;
const runs = new Map(data.runs.map((run) => [run.id, run])), text = (place) => data.texts[place];

const repeatsItself = (values) => {
  const middle = median(values);
  return values.length >= 2 && values.every((v) => Math.abs(v - middle) <= Math.abs(middle) * limits.repeats);
};
// The scale of a comparison: if all values are positive, a change is a ratio.
const isRatio = (line) => [...line.a, ...line.b].every((v) => v > 0);
const scaled = (line) => (isRatio(line) ? [line.a.map(Math.log), line.b.map(Math.log)] : [line.a, line.b]);
const differences = (a, b) => a.slice(0, b.length).map((v, i) => b[i] - v);

// The test for two runs: "signA" if the baseline is one exact figure, "signB" if the other side is.
const testOf = (one, other) => {
  if (one.deterministic && other.deterministic) return "exact";
  if (one.deterministic) return "signA";
  if (other.deterministic) return "signB";
  return one.batch === other.batch && String(one.repetitions) === String(other.repetitions) ? "pairs" : "ranks";
};
const isTested = (line, test) => ({ exact: false, counts: false, signA: true, signB: true }[test]
  ?? !(repeatsItself(line.a) && repeatsItself(line.b)));
const pOf = (line, test) => {
  if (!isTested(line, test)) return null;
  switch (test) {
    case "signA": return signTest(line.b, line.medians[0]);
    case "signB": return signTest(line.a, line.medians[1]);
    case "pairs": return signedRank(differences(...scaled(line)));
    default: return mannWhitney(line.a, line.b);
  }
};
const leastP = (test, n, m) => ({ signA: leastSignP(m), signB: leastSignP(n), pairs: leastSignP(n) }[test] ?? leastRanksP(n, m));
const effectsOf = (test, a, b) => {
  switch (test) {
    case "pairs": {
      const apart = differences(a, b);
      return sorted(apart.flatMap((x, i) => apart.slice(i).map((y) => (x + y) / 2)));
    }
    case "signA": return sorted(b.map((v) => v - a[0]));
    case "signB": return sorted(a.map((v) => b[0] - v));
    default: return sorted(a.flatMap((v) => b.map((w) => w - v)));
  }
};
const intervalPlace = (test, n, m) => {
  switch (test) {
    case "signA": return leftOut.sign(m, limits.alpha);
    case "signB": return leftOut.sign(n, limits.alpha);
    default: return leftOut[test](n, m, limits.alpha);
  }
};

// The change as a share of the baseline, and its interval; null if undefined.
const changeAndInterval = (line) => {
  const [before, after] = line.medians, exact = before !== 0 ? after / before - 1 : null;
  const n = line.a.length, m = line.b.length;
  const varying = { exact: 0, counts: 0, signA: m, signB: n }[line.test] ?? Math.min(n, m);
  if (varying < 2) return [exact, null];
  const ratio = isRatio(line), effects = effectsOf(line.test, ...scaled(line));
  const least = [...line.a, ...line.b].every((v) => v >= 0) ? -1 : -Infinity;
  const share = (effect) => (ratio ? Math.max(Math.expm1(effect), least) : before !== 0 ? Math.max(effect / Math.abs(before), least) : null);
  const place = intervalPlace(line.test, n, m), low = share(effects[place] ?? NaN);
  const ends = place < 0 || low === null ? null : [low, share(effects[effects.length - 1 - place])];
  return [share(median(effects)) ?? exact, ends];
};
const spread = (line) => {
  const of = (values, middle) => {
    const low = Math.min(...values), high = Math.max(...values);
    return high > low ? (high - low) / Math.abs(middle) : 0;
  };
  return Math.max(of(line.a, line.medians[0]), of(line.b, line.medians[1]));
};

// The minimum detectable change as a factor above 1, or null. Simulates comparisons as detectable.rs.
const sideOf = (values) => {
  const n = values.length, mean = sum(values) / n, stretch = Math.sqrt(n / Math.max(n - 1, 1));
  const apart = values.map((v) => (v - mean) * stretch);
  return { values: apart, deviation: Math.sqrt(sum(apart.map((v) => v * v)) / n) };
};
const exactSide = (values) => ({ values: values.map(() => 0), deviation: 0 });
const isAfter = (a, b) => {
  const at = a.findIndex((v, i) => v !== b[i]);
  return at < 0 ? false : at >= b.length || a[at] > b[at];
};
const detectableOf = (line, level) => {
  if (line.p === null || line.verdict === "inconclusive" || !isRatio(line)) return null;
  let { test } = line, [a, b] = scaled(line);
  if (isAfter(a, b)) [a, b, test] = [b, a, { signA: "signB", signB: "signA" }[test] ?? test];
  const n = a.length, m = b.length, varying = { signA: m, signB: n }[test] ?? Math.min(n, m);
  const place = test === "signA" ? leftOut.sign(m, level) : test === "signB" ? leftOut.sign(n, level) : leftOut[test](n, m, level);
  if (varying < 3 || place < 0) return null;
  const [one, other, freedom] = {
    pairs: () => [exactSide(a), sideOf(differences(a, b)), n - 1],
    ranks: () => [sideOf(a), sideOf(b), n + m - 2],
    signA: () => [exactSide(a), sideOf(b), m - 1],
    signB: () => [sideOf(a), exactSide(b), n - 1],
  }[test]();
  const { power, simulations, fewest, work, smooth } = data.detectable, { below, normal } = generator(1);
  const rough = Math.sqrt(1 - smooth * smooth), interest = Math.log1p(limits.practical);
  const draw = (side, scale) => side.values.map(() => {
    const value = side.values[below(side.values.length)];
    return scale * (rough * value + smooth * side.deviation * normal());
  });
  const rounds = Math.min(Math.max(Math.floor(work / effectsOf(test, a, b).length), fewest), simulations);
  const least = Array.from({ length: rounds }, (_, number) => {
    let squares = 0;
    for (let i = 0; i < freedom; i += 1) squares += normal() ** 2;
    const scale = Math.sqrt(freedom / squares), drawn = draw(one, scale), effects = effectsOf(test, drawn, draw(other, scale));
    const estimate = median(effects);
    return number % 2 ? Math.max(effects[effects.length - 1 - place], interest + estimate) : Math.max(-effects[place], interest - estimate);
  });
  return Math.exp(Math.max(sorted(least)[Math.floor(rounds * power)], interest));
};

const verdictOf = (line, level, floor) => {
  const difference = line.medians[1] - line.medians[0], { change, test, interval } = line;
  const changed = (by) => (line.better === "neither" ? "changed" : (line.better === "lower") === by < 0 ? "better" : "worse");
  if (test === "exact") return difference === 0 ? "equal" : changed(difference);
  if (test === "counts") {
    const woken = line.unit === "count" && Math.abs(difference) <= limits.woken;
    const within = difference === 0 || woken || (change !== null && Math.abs(change) < Math.max(spread(line), limits.single));
    return within ? "boots" : changed(difference);
  }
  if (line.p === null) {
    if (change === null) return difference !== 0 ? changed(difference) : "none";
    return Math.abs(change) >= floor ? changed(change) : "none";
  }
  if (difference === 0 || (change !== null && Math.abs(change) < limits.nothing)) return "none";
  if (leastP(test, line.a.length, line.b.length) >= level) return "inconclusive";
  if (line.p >= limits.alpha) return "none";
  if (change === null) return changed(difference);
  const apart = interval !== null && (interval[0] > 0 || interval[1] < 0);
  return apart && Math.abs(change) >= limits.practical ? changed(change) : "none";
};
const differs = (line) => ["better", "worse", "changed"].includes(line.verdict);

// The deciding metrics, and the primary metric if it was not measured on both sides.
const decidingOf = (family, measured) => {
  if (family.primary === null) return [[], null];
  const also = family.also.filter(measured);
  if (measured(family.primary)) return [[family.primary, ...also], null];
  return [[[...also, ...family.headline.filter(measured)][0] ?? family.primary], family.primary];
};

const linesOf = (one, other) => {
  const theirs = new Map(other.metrics.map(([metric, values]) => [data.metrics[metric].name, [data.metrics[metric], values]]));
  return one.metrics.flatMap(([metric, a]) => {
    const { name, unit, better, maximum } = data.metrics[metric], [found, b] = theirs.get(name) ?? [];
    if (!found || found.unit !== unit || [...a, ...b].includes(null)) return [];
    return [{ name, unit, better, maximum, a, b, medians: [median(a), median(b)] }];
  });
};

const compareRuns = (one, other) => {
  const test = testOf(one, other), lines = linesOf(one, other), family = data.families[one.family];
  const [deciding, notMeasured] = decidingOf(family, (name) => lines.some((line) => line.name === name));
  const counted = one.counts && other.counts;
  for (const line of lines) {
    line.deciding = deciding.includes(line.name);
    line.family = line.deciding ? "primary" : family.headline.includes(line.name) ? "headline" : "rest";
  }
  const parts = { primary: 1, headline: limits.headline, rest: 1 - limits.headline };
  const both = ["headline", "rest"].every((of) => lines.some((line) => line.family === of));
  for (const of of Object.keys(parts)) {
    const part = both ? parts[of] : 1, members = lines.filter((line) => line.family === of);
    const varying = members.filter((line) => isTested(line, test)).length;
    const level = limits.alpha * part / Math.max(varying, 1);
    for (const line of members) {
      const n = line.a.length, sides = [line.a, line.b];
      line.test = test === "pairs" && (n !== line.b.length || leastSignP(n) >= level) ? "ranks" : test;
      const single = sides.some((values) => values.length === 1), agree = sides.every((values) => values.length === 1 || repeatsItself(values));
      const longest = line.maximum && line.unit === "instr";
      if (counted && ["pairs", "ranks"].includes(line.test) && single && agree && !longest) line.test = "counts";
      line.p = pOf(line, line.test);
      [line.change, line.interval] = changeAndInterval(line);
    }
    const tested = members.filter((line) => line.p !== null), corrected = holm(tested.map((line) => line.p));
    tested.forEach((line, i) => { line.p = Math.min(corrected[i] / part, 1); });
    for (const line of members) {
      const floor = counted ? Math.max(spread(line), limits.counted) : limits.repeated;
      line.verdict = verdictOf(line, level, floor);
      line.detectable = detectableOf(line, level);
      if (line.verdict === "inconclusive") {
        line.needed = 2;
        while (leastP(line.test, line.needed, line.needed) >= level) line.needed += 1;
      }
    }
  }
  return { lines, deciding, notMeasured, exact: test === "exact", warnings: warningsOf(one, other, lines, test, counted) };
};

// The warnings about the comparison, in the order of caveats.rs.
const warningsOf = (one, other, lines, test, counted) => {
  const say = (sentence, values = {}) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const { sentences, environment, unlessAsked } = data, list = [];
  const sides = (of) => ({ a: text(of(one)), b: text(of(other)) });
  if (one.experiment !== other.experiment) list.push(say(sentences.experiments, sides((run) => run.experiment)));
  const elapsed = (run) => run.metrics.map(([metric]) => data.metrics[metric]).find((metric) => metric.name === data.elapsed)?.unit;
  if (elapsed(one) && elapsed(other) && elapsed(one) !== elapsed(other)) list.push(sentences.units);
  environment.forEach((key, at) => {
    const asked = at - (environment.length - unlessAsked);
    const [a, b] = [one.environment[at], other.environment[at]];
    if (a === null || b === null || a === b || (asked >= 0 && (one.asked[asked] || other.asked[asked]))) return;
    list.push(say(sentences.environment, { key, a: text(a), b: text(b) }));
  });
  if (["pairs", "ranks"].includes(test) && !counted && one.batch !== other.batch) list.push(sentences.interleaved);
  for (const run of [one, other]) list.push(...run.warnings.map(text));
  if (lines.some((line) => line.name === data.elapsed)) list.push(...[one, other].filter((run) => run.drift !== null).map((run) => text(run.drift)));
  return list;
};

// The display of a comparison.
const eitherWay = (factor) => (factor < 2 ? `±${fixed(Math.max((factor - 1) * 100, 1), 0)}%` : `a factor of ${digits(factor)}`);
const answerOf = (found, one, other) => {
  const lines = found.deciding.map((name) => found.lines.find((line) => line.name === name)).filter(Boolean);
  const main = lines.find(differs) ?? lines[0];
  if (!main) return found.deciding.length ? `${found.deciding[0]} was not measured on both sides.` : "These runs have no primary metric.";
  const parts = main.change === null ? [] : [changeOf(main.change, differs(main))];
  if (found.exact) parts.push("exact");
  else if (main.test === "counts") parts.push(data.sentences.singleCounts);
  else if (main.interval && main.p !== null) parts.push(`95% interval ${main.interval.map(percent).join(" … ")}`, `p ${pValue(main.p)}`);
  if (main.verdict === "none" && main.detectable !== null) parts.push(`minimum detectable change ${eitherWay(main.detectable)}`);
  const figures = main.medians.map((v) => figure(v, main.unit)).join(" → ");
  const needed = main.needed ? ` With ${main.a.length} and ${main.b.length} repetitions; this metric needs at least ${main.needed} on each side.` : "";
  const missing = found.notMeasured ? ` ${found.notMeasured}, the primary metric, was not measured on both sides.` : "";
  return `${main.name}: ${verdicts[main.verdict]}, ${figures}${parts.length ? ` (${parts.join(", ")})` : ""}.${needed}${missing}`;
};
const range = (values, unit) => {
  const ends = values.length > 1 ? `${figure(Math.min(...values), unit)} … ${figure(Math.max(...values), unit)} · ` : "";
  return make("span", { class: "soft" }, `${ends}n ${values.length}`);
};
const rowOf = (line) => {
  const side = (n, values) => make("td", {}, make("data", { value: line.medians[n] }, figure(line.medians[n], line.unit)), " ", range(values, line.unit));
  const change = line.change === null ? DASH : make("data", { value: line.change }, changeOf(line.change, differs(line)));
  const word = { better: "good", worse: "bad", changed: "fair" }[line.verdict];
  return make("tr", { class: differs(line) ? "differs" : undefined, "data-metric": line.name },
    make("th", { scope: "row", class: line.deciding ? undefined : "other" }, make("a", { href: `glossary.html#g-${line.name}` }, line.name)),
    side(0, line.a), side(1, line.b), make("td", {}, change),
    make("td", {}, line.interval ? make("data", { value: line.interval.join(" ") }, line.interval.map(percent).join(" … ")) : DASH),
    make("td", {}, line.p === null ? DASH : make("data", { value: line.p }, pValue(line.p))),
    make("td", { class: ["verdict-word", word].filter(Boolean).join(" ") }, make("data", { value: data.tests[line.test.replace(/^sign.$/, "sign")] }, verdicts[line.verdict]),
      ...(line.verdict === "none" && line.detectable !== null ? [make("span", { class: "soft" }, make("data", { value: line.detectable }, `detectable: ${eitherWay(line.detectable)}`))] : [])));
};

const sides = ["before", "after"].map((side) => byId(side));
const draw = () => {
  const ids = location.hash.slice(1).split(",").map(Number), [one, other] = ids.map((id) => runs.get(id));
  const [answer, table, warnings] = ["answer", "lines", "warnings"].map(byId);
  [one, other].forEach((run, n) => { if (run) sides[n].value = String(run.id); });
  byId("result").hidden = !one || !other;
  if (!one || !other) {
    answer.textContent = ids.length === 2 && ids.every(Number.isInteger) ? "At least one of these runs is not in this site." : "Choose two runs.";
    return;
  }
  const found = compareRuns(one, other), needed = Math.max(0, ...found.lines.map((line) => line.needed ?? 0));
  answer.textContent = answerOf(found, one, other);
  [one, other].forEach((run, n) => {
    const link = make("a", { href: text(run.page) }, text(run.name));
    byId(`${sides[n].id}-run`).replaceChildren(link, ` · ${text(run.experiment)} on ${text(run.target)} · ${text(run.started).slice(0, 16).replace("T", " ")} UTC`);
    byId(`${sides[n].id}-head`).textContent = text(run.name);
  });
  table.replaceChildren(...found.lines.map(rowOf));
  const notes = needed ? [data.sentences.repetitions.replaceAll("{n}", needed)] : [];
  byId("needed").textContent = notes.join(" ");
  warnings.replaceChildren(...found.warnings.map((warning) => make("li", {}, `Warning: ${warning}`)));
  warnings.hidden = found.warnings.length === 0;
  byId("command").textContent = `pagelab compare ${text(one.name)} ${text(other.name)}`;
  document.title = `${text(other.name)} compared with ${text(one.name)} · pagelab`;
};

for (const select of sides) {
  select.append(...data.runs.map((run) => make("option", { value: run.id }, `${text(run.name)} · ${text(run.started).slice(0, 10)} · ${text(run.target)}`)));
  select.addEventListener("change", () => { location.hash = sides.map((side) => side.value).join(","); });
}
byId("swap").addEventListener("click", () => { location.hash = sides.map((side) => side.value).reverse().join(","); });
window.addEventListener("hashchange", draw);
// The default: the newest run, compared with the run of the same experiment before it.
if (!location.hash && data.runs.length > 1) {
  const [newest, ...others] = data.runs, before = others.find((run) => run.experiment === newest.experiment) ?? others[0];
  history.replaceState(null, "", `#${before.id},${newest.id}`);
}
draw();
document.body.dataset.ready = "true";
