// Formats figures with units to three significant digits, as text.rs and comparisons.rs do.
const DASH = "—";
// Formats with a number of decimal places; rounds halves to even, as Rust does.
const fixed = (v, places) => {
  const doubled = Math.abs(v) * 2 ** (places + 1), scale = 10 ** places;
  if (!Number.isInteger(doubled) || doubled % 2 === 0) return v.toFixed(places);
  const below = Math.floor(Math.abs(v) * scale);
  return (v < 0 ? "-" : "") + ((below + below % 2) / scale).toFixed(places);
};
const grouped = (text) => {
  const [, sign, figures] = /^(-?)(.*)$/.exec(text), out = sign + figures.replace(/\B(?=(\d{3})+$)/g, ",");
  return out === "-0" ? "0" : out;
};
const digits = (v) => {
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size >= 99.95) return grouped(fixed(v, 0));
  const places = [9.995, 0.9995, 0.0995, 0.0005].findIndex((least) => size >= least) + 1;
  return places ? fixed(v, places) : v.toExponential(1).replace("e+", "e");
};
const count = (v) => (Math.abs(v) < 99.95 && !Number.isInteger(v) ? digits(v) : grouped(fixed(v, 0)));
const countExact = (v) => {
  const [whole, tenth] = fixed(v, 1).split(".");
  return tenth === "0" ? grouped(whole) : `${grouped(whole)}.${tenth}`;
};
const duration = (ns) => {
  const [unit, scale] = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]].find(([, scale]) => Math.abs(ns) / scale < 999.5) || ["s", 1e9];
  const v = ns / scale;
  if (unit === "ns" && Number.isInteger(v)) return `${v} ns`;
  return `${unit === "s" && Math.abs(v) >= 1000 ? count(v) : digits(v)} ${unit}`;
};
const bytes = (b) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"], found = units.findIndex((_, n) => Math.abs(b / 1024 ** n) < 1023.5);
  const n = found < 0 ? units.length - 1 : found, v = b / 1024 ** n;
  return `${Number.isInteger(v) ? v : digits(v)} ${units[n]}`;
};
const figure = (v, unit) => {
  if (!Number.isFinite(v)) return DASH;
  switch (unit) {
    case "ns": return duration(v);
    case "bytes": return bytes(v);
    case "share": return digits(v * 100) + "%";
    case "/s": return count(v) + "/s";
    case "bytes/s": return bytes(v) + "/s";
    case "instr": return countExact(v) + " instr";
    case "/Minstr": return (Math.abs(v) < 99.95 ? digits(v) : countExact(v)) + "/Minstr";
    case "bytes/Minstr": return bytes(v) + "/Minstr";
    case "ratio": return digits(v);
    default: return count(v);
  }
};
const signed = (v, places) => (v < 0 || Object.is(v, -0) ? "" : "+") + fixed(v, places) + "%";
const percent = (share) => {
  const text = signed(share * 100, 1);
  return text === "+0.0%" || text === "-0.0%" ? "0.0%" : text;
};
// A change. If the metric differs but the change would print as 0.0%, it gets two significant digits.
const changeOf = (change, differs) => {
  const text = percent(change);
  if (text !== "0.0%" || !differs || change === 0) return text;
  const share = change * 100;
  return signed(share, Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(share))))));
};
const pValue = (p) => (p < 0.0001 ? "< 0.0001" : fixed(p, 4));
