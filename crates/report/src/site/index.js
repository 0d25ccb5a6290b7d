// The table of runs: filters it, sorts it by a column, and selects two runs to compare.
const body = byId("runs"), rows = [...body.rows], filter = byId("filter");
const words = new Map(rows.map((row) => [row, (row.textContent + " " + (row.dataset.words || "")).toLowerCase()]));

const show = () => {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !wanted.every((word) => words.get(row).includes(word));
    if (!row.hidden) shown += 1;
  }
  byId("shown").textContent = wanted.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs` : "";
};
filter.addEventListener("input", show);
filter.addEventListener("keydown", (event) => { if (event.key === "Escape") { filter.value = ""; show(); } });

// Sorts numbers by value within a group, other cells by text. Empty cells come last.
const key = (row, column) => {
  const cell = row.cells[column], { group = "", number } = cell.dataset;
  return { group, number: number === undefined ? null : Number(number), text: cell.textContent };
};
const natural = new Intl.Collator("en", { numeric: true });
const order = (a, b) => {
  if (a.number !== null && b.number !== null) return natural.compare(a.group, b.group) || a.number - b.number;
  return natural.compare(a.text, b.text);
};
const heads = [...document.querySelectorAll("th[aria-sort]")];
for (const head of heads) {
  head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "none" ? head.dataset.first !== "descending" : head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.setAttribute("aria-sort", other === head ? (up ? "ascending" : "descending") : "none");
    const keyed = rows.map((row) => [row, key(row, head.cellIndex)]);
    keyed.sort(([, a], [, b]) => {
      const absent = (one) => one.text === "—" || one.text === "";
      if (absent(a) !== absent(b)) return absent(a) ? 1 : -1;
      return up ? order(a, b) : order(b, a);
    });
    body.append(...keyed.map(([row]) => row));
  });
}

const chosen = (side) => document.querySelector(`input[name=${side}]:checked`);
const choose = () => {
  const [before, after] = ["before", "after"].map(chosen), link = byId("compare");
  const name = (input) => (input ? input.dataset.name : "—");
  byId("before").textContent = name(before);
  byId("after").textContent = name(after);
  const ready = before && after && before.value !== after.value;
  if (ready) link.setAttribute("href", `compare.html#${before.value},${after.value}`); else link.removeAttribute("href");
  link.setAttribute("aria-disabled", String(!ready));
};
body.addEventListener("change", choose);
choose();
show();
document.body.dataset.ready = "true";
