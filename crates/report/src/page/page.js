// Draws every plot from the data beside it, with a cursor, zoom, a legend that hides series, and a
// table on demand. Plain SVG and canvas; nothing is loaded.
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 64, right: 14, top: 10, bottom: 40 };
  const el = (name, attributes, ...children) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const html = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // Figures with units; three digits.
  const digits = (v) => {
    const a = Math.abs(v);
    if (a === 0) return "0";
    if (a >= 100) return Math.round(v).toLocaleString("en");
    return String(Number(v.toPrecision(3)));
  };
  const scaled = (v, base, units) => {
    let i = 0;
    while (i + 1 < units.length && Math.abs(v) >= base * 0.9995) { v /= base; i += 1; }
    return digits(v) + " " + units[i];
  };
  const figure = (v, unit) => {
    if (v === null || v === undefined || !Number.isFinite(v)) return "—";
    switch (unit) {
      case "ns": return scaled(v, 1000, ["ns", "µs", "ms", "s"]);
      case "bytes": return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
      case "share": return digits(v * 100) + " %";
      default: return Number.isInteger(v) ? v.toLocaleString("en") : digits(v);
    }
  };
  const short = (v, unit) => {
    if (unit === "" && Math.abs(v) >= 10000) {
      return v >= 1e6 ? digits(v / 1e6) + " M" : digits(v / 1e3) + " k";
    }
    return figure(v, unit);
  };

  // Tick values between low and high.
  const ticks = (low, high, log, count, unit) => {
    if (log && unit === "bytes") {
      const list = [];
      const from = Math.ceil(Math.log2(low)), to = Math.floor(Math.log2(high));
      const every = Math.max(1, Math.ceil((to - from + 1) / count));
      for (let e = from; e <= to; e += every) list.push(Math.pow(2, e));
      return list;
    }
    if (log) {
      const list = [];
      const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
      const every = Math.max(1, Math.ceil((to - from) / count));
      for (let e = from; e <= to; e += every) {
        const base = Math.pow(10, e);
        for (const m of to - from <= 2 ? [1, 2, 5] : [1]) {
          if (base * m >= low * 0.999 && base * m <= high * 1.001) list.push(base * m);
        }
      }
      return list;
    }
    const radix = unit === "bytes" ? 2 : 10;
    const raw = (high - low) / count;
    const power = Math.pow(radix, Math.floor(Math.log(raw) / Math.log(radix)));
    const step = (radix === 2 ? [1, 2] : [1, 2, 5, 10]).map((m) => m * power).find((s) => s >= raw) || raw;
    const list = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) list.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return list;
  };

  class Plot {
    constructor(box) {
      this.box = box;
      this.data = JSON.parse(box.querySelector("script").textContent);
      this.canvas = box.querySelector(".canvas");
      this.readout = box.querySelector(".readout");
      this.hidden = new Set();
      this.log = this.data.y.log;
      this.zoom = null;
      this.at = null;
      this.legend();
      this.table();
      this.draw();
      this.listen();
    }

    get shown() { return this.data.series.filter((_, i) => !this.hidden.has(i)); }

    // The whole extent of an axis over what is shown.
    extent(axis) {
      let low = Infinity, high = -Infinity;
      const log = axis === "y" ? this.log : this.data.x.log;
      for (const s of this.shown) {
        for (let i = 0; i < s.x.length; i += 1) {
          const v = axis === "x" ? s.x[i] : s.y[i];
          if (v === null || (log && v <= 0)) continue;
          if (axis === "y" && this.zoom && (s.x[i] < this.zoom[0] || s.x[i] > this.zoom[1])) continue;
          low = Math.min(low, v); high = Math.max(high, v);
        }
      }
      const heat = this.data.heat;
      if (heat) { if (axis === "x") { low = heat.x[0]; high = heat.x[heat.x.length - 1]; } else { low = 0; high = heat.pages; } }
      for (const mark of this.data.marks || []) if (axis === "x") { low = Math.min(low, mark.low ?? mark.x); high = Math.max(high, mark.high ?? mark.x); }
      if (low > high) { low = log ? 1 : 0; high = log ? 10 : 1; }
      if (axis === "y" && !log && !heat) { low = Math.min(0, low); high = high > low ? high + (high - low) * 0.05 : low + 1; }
      if (axis === "y" && log) { low /= 1.3; high *= 1.3; }
      if (low === high) high = log ? low * 10 : low + 1;
      return [low, high];
    }

    draw() {
      const width = Math.max(280, this.canvas.clientWidth || 640);
      const strips = this.data.strips || [];
      const height = (this.data.heat ? 300 : 260) + strips.length * 16;
      this.width = width;
      this.size = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom - strips.length * 16 };
      const xs = this.zoom || this.extent("x"), ys = this.extent("y");
      this.domain = xs;
      const map = (range, log, size) => {
        const [a, b] = log ? range.map(Math.log) : range;
        return (v) => ((log ? Math.log(v) : v) - a) / (b - a) * size;
      };
      const fx = map(xs, this.data.x.log, this.size.w), fy = map(ys, this.log, this.size.h);
      this.px = (v) => MARGIN.left + fx(v);
      this.py = (v) => MARGIN.top + this.size.h - fy(v);
      const svg = el("svg", {
        viewBox: `0 0 ${width} ${height}`, width, height, tabindex: "0", role: "img",
        "aria-label": this.data.label + ". Arrow keys move the cursor, plus and minus zoom, Escape resets.",
      });
      const clip = "clip-" + this.box.id;
      svg.append(el("defs", {}, el("clipPath", { id: clip }, el("rect", { x: MARGIN.left, y: MARGIN.top, width: this.size.w, height: this.size.h }))));
      this.axes(svg, xs, ys, strips);
      const marks = el("g", { "clip-path": `url(#${clip})` });
      if (this.data.heat) this.heat(marks);
      (this.data.marks || []).forEach((mark, i) => this.mark(marks, mark, i));
      this.data.series.forEach((s, i) => { if (!this.hidden.has(i)) marks.append(this.line(s)); });
      svg.append(marks);
      strips.forEach((strip, i) => this.strip(svg, strip, i));
      this.cursor = el("g", { class: "cursor" });
      svg.append(this.cursor);
      const focused = this.svg && document.activeElement === this.svg;
      this.canvas.replaceChildren(svg);
      this.svg = svg;
      if (focused) svg.focus();
      if (this.at !== null) this.move(this.at, false);
    }

    axes(svg, xs, ys, strips) {
      const bottom = MARGIN.top + this.size.h;
      const foot = bottom + strips.length * 16;
      const grid = el("g", { class: "grid" });
      for (const v of ticks(ys[0], ys[1], this.log, 5, this.data.y.unit)) {
        const y = this.py(v);
        grid.append(el("line", { x1: MARGIN.left, x2: MARGIN.left + this.size.w, y1: y, y2: y }));
        const text = el("text", { x: MARGIN.left - 7, y: y + 4, "text-anchor": "end" });
        text.textContent = short(v, this.data.y.unit);
        grid.append(text);
      }
      for (const v of ticks(xs[0], xs[1], this.data.x.log, Math.max(2, Math.floor(this.size.w / 95)), this.data.x.unit)) {
        const x = this.px(v);
        grid.append(el("line", { x1: x, x2: x, y1: foot, y2: foot + 4, class: "tick" }));
        const text = el("text", { x, y: foot + 17, "text-anchor": x > MARGIN.left + this.size.w - 20 ? "end" : "middle" });
        text.textContent = short(v, this.data.x.unit);
        grid.append(text);
      }
      grid.append(el("line", { x1: MARGIN.left, x2: MARGIN.left + this.size.w, y1: bottom, y2: bottom, class: "base" }));
      const label = el("text", { x: MARGIN.left + this.size.w / 2, y: foot + 34, "text-anchor": "middle", class: "label" });
      label.textContent = this.data.x.label;
      svg.append(grid, label);
    }

    line(s) {
      const parts = [];
      let pen = false, last = null;
      for (let i = 0; i < s.x.length; i += 1) {
        const v = s.y[i];
        if (v === null || (this.log && v <= 0)) { pen = false; continue; }
        const x = this.px(s.x[i]).toFixed(1), y = this.py(v).toFixed(1);
        if (!pen) parts.push(`M${x} ${y}`);
        else if (s.step) parts.push(`H${x}V${y}`);
        else parts.push(`L${x} ${y}`);
        if (!pen && (i + 1 === s.x.length || s.y[i + 1] === null)) parts.push("h0.1");
        pen = true; last = v;
      }
      const group = el("g", { class: `series c${s.color % 6} d${s.dash}` }, el("path", { d: parts.join("") }));
      if (s.dots) {
        s.x.forEach((x, i) => { if (s.y[i] !== null && !(this.log && s.y[i] <= 0)) group.append(el("circle", { cx: this.px(x), cy: this.py(s.y[i]), r: 3 })); });
      }
      return group;
    }

    mark(group, mark, index) {
      const x = this.px(mark.x);
      if (mark.low !== null && mark.low !== undefined) {
        const a = this.px(mark.low), b = this.px(mark.high);
        group.append(el("rect", { x: a, y: MARGIN.top, width: Math.max(1, b - a), height: this.size.h, class: "interval" }));
      }
      group.append(el("line", { x1: x, x2: x, y1: MARGIN.top, y2: MARGIN.top + this.size.h, class: "knee" }));
      const left = x > MARGIN.left + this.size.w * 0.7;
      const text = el("text", { x: x + (left ? -6 : 6), y: MARGIN.top + 14 + (index % 6) * 15, "text-anchor": left ? "end" : "start", class: "kneetext" });
      text.textContent = mark.label;
      group.append(text);
    }

    // Cells as a picture; each column of digits 0-9 is a share for the cell's colour.
    heat(group) {
      const { x, rows, layers } = this.data.heat;
      for (let c = 0; c + 1 < x.length; c += 1) {
        const left = this.px(x[c]), width = this.px(x[c + 1]) - left + 0.5;
        for (const layer of layers) {
          const cells = layer.columns[c];
          for (let r = 0; r < rows;) {
            let end = r + 1;
            while (end < rows && cells[end] === cells[r]) end += 1;
            if (cells[r] !== "0") {
              const top = this.py(this.data.heat.pages * end / rows), bottom = this.py(this.data.heat.pages * r / rows);
              group.append(el("rect", { x: left.toFixed(1), y: top.toFixed(1), width: width.toFixed(1), height: (bottom - top + 0.3).toFixed(1), class: "cell " + layer.style, "fill-opacity": (Number(cells[r]) / 9).toFixed(2) }));
            }
            r = end;
          }
        }
      }
    }

    strip(svg, strip, index) {
      const y = MARGIN.top + this.size.h + index * 16 + 3;
      const n = strip.cells.length;
      const group = el("g", { class: "strip" });
      for (let i = 0; i < n;) {
        let end = i + 1;
        while (end < n && strip.cells[end] === strip.cells[i]) end += 1;
        const from = Math.max(this.domain[0], strip.x[0] + (strip.x[1] - strip.x[0]) * i / n);
        const to = Math.min(this.domain[1], strip.x[0] + (strip.x[1] - strip.x[0]) * end / n);
        if (strip.cells[i] !== "0" && to > from) {
          const left = this.px(from);
          group.append(el("rect", { x: left.toFixed(1), y, width: (this.px(to) - left + 0.3).toFixed(1), height: 11, class: "cell " + strip.style, "fill-opacity": (Number(strip.cells[i]) / 9).toFixed(2) }));
        }
        i = end;
      }
      const text = el("text", { x: MARGIN.left - 7, y: y + 9, "text-anchor": "end" });
      text.textContent = strip.name;
      svg.append(group, text);
    }

    legend() {
      const bar = this.box.querySelector(".legend");
      if (this.data.y.toggle) {
        const button = html("button", { type: "button", class: "scale" }, this.log ? "logarithmic" : "linear");
        button.addEventListener("click", () => { this.log = !this.log; button.textContent = this.log ? "logarithmic" : "linear"; this.draw(); });
        bar.append(button);
      }
      if (this.data.series.length > 1 || (this.data.series[0] && this.data.series[0].name)) {
        this.data.series.forEach((s, i) => {
          const swatch = el("svg", { width: 22, height: 10, "aria-hidden": "true" }, el("g", { class: `series c${s.color % 6} d${s.dash}` }, el("path", { d: "M1 5H21" })));
          const button = html("button", { type: "button", "aria-pressed": "true" }, swatch, s.name);
          button.addEventListener("click", () => {
            if (this.hidden.has(i)) this.hidden.delete(i); else this.hidden.add(i);
            button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
            this.draw();
          });
          bar.append(button);
        });
      }
      for (const layer of (this.data.heat || { layers: [] }).layers) bar.append(html("span", { class: "key " + layer.style }, layer.name));
    }

    // The figures, made when somebody opens them.
    table() {
      const details = this.box.querySelector("details");
      details.addEventListener("toggle", () => {
        if (!details.open || details.querySelector("table")) return;
        const table = html("table", {});
        const series = this.data.series;
        if (this.data.heat) {
          table.append(html("tr", {}, html("th", {}, this.data.x.label), ...this.data.heat.layers.map((l) => html("th", {}, l.name))));
          const { x, rows, layers } = this.data.heat;
          for (let c = 0; c + 1 < x.length; c += 1) {
            const share = (l) => [...l.columns[c]].reduce((sum, d) => sum + Number(d) / 9, 0) / rows;
            table.append(html("tr", {}, html("th", {}, figure(x[c], "")), ...layers.map((l) => html("td", {}, figure(share(l), "share")))));
          }
        } else {
          table.append(html("tr", {}, html("th", {}, this.data.x.label), ...series.map((s) => html("th", {}, s.name || this.data.y.label))));
          const all = [...new Set(series.flatMap((s) => s.x))].sort((a, b) => a - b);
          const every = Math.max(1, Math.ceil(all.length / 120));
          const lookup = series.map((s) => new Map(s.x.map((x, i) => [x, s.y[i]])));
          all.filter((_, i) => i % every === 0 || i + 1 === all.length).forEach((x) => {
            table.append(html("tr", {}, html("th", {}, figure(x, this.data.x.unit)), ...lookup.map((m) => html("td", {}, figure(m.get(x), this.data.y.unit)))));
          });
          if (every > 1) details.append(html("p", {}, `Every ${every}th of ${all.length} rows; the notebook has all.`));
        }
        details.append(table);
      });
    }

    move(x, speak) {
      this.at = x;
      this.cursor.replaceChildren();
      const px = this.px(x);
      if (px < MARGIN.left - 1 || px > MARGIN.left + this.size.w + 1) { this.readout.textContent = ""; return; }
      this.cursor.append(el("line", { x1: px, x2: px, y1: MARGIN.top, y2: MARGIN.top + this.size.h }));
      const words = [`${this.data.x.label} ${figure(x, this.data.x.unit)}`];
      for (const s of this.shown) {
        const i = this.nearest(s.x, x);
        if (i < 0) continue;
        const v = s.y[i];
        words.push(`${s.name || this.data.y.label} ${figure(v, this.data.y.unit)}`);
        if (v !== null && !(this.log && v <= 0)) this.cursor.append(el("circle", { cx: this.px(s.x[i]), cy: this.py(v), r: 3.5, class: `c${s.color % 6}` }));
      }
      this.readout.setAttribute("aria-live", speak ? "polite" : "off");
      this.readout.textContent = words.join(" · ");
    }

    nearest(xs, x) {
      if (xs.length === 0) return -1;
      let low = 0, high = xs.length - 1;
      while (low < high) { const mid = (low + high) >> 1; if (xs[mid] < x) low = mid + 1; else high = mid; }
      return low > 0 && Math.abs(xs[low - 1] - x) < Math.abs(xs[low] - x) ? low - 1 : low;
    }

    points() {
      const longest = this.shown.reduce((best, s) => (s.x.length > best.length ? s.x : best), this.data.heat ? this.data.heat.x : []);
      return longest.filter((x) => x >= this.domain[0] && x <= this.domain[1]);
    }

    invert(px) {
      const share = (px - MARGIN.left) / this.size.w;
      const [a, b] = this.domain;
      return this.data.x.log ? Math.exp(Math.log(a) + share * Math.log(b / a)) : a + share * (b - a);
    }

    listen() {
      const position = (event) => {
        const box = this.svg.getBoundingClientRect();
        return (event.clientX - box.left) * this.width / box.width;
      };
      let from = null;
      this.canvas.addEventListener("pointermove", (event) => {
        const px = position(event);
        const points = this.points();
        const i = this.nearest(points, this.invert(px));
        if (i >= 0) this.move(points[i], false);
        if (from !== null) this.cursor.append(el("rect", { x: Math.min(from, px), y: MARGIN.top, width: Math.abs(px - from), height: this.size.h, class: "drag" }));
      });
      this.canvas.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType !== "touch") from = position(event); });
      this.canvas.addEventListener("pointerup", (event) => {
        if (from === null) return;
        const to = position(event);
        if (Math.abs(to - from) > 8) { this.zoom = [from, to].map((p) => this.invert(p)).sort((a, b) => a - b); this.draw(); }
        from = null;
      });
      this.canvas.addEventListener("pointerleave", () => { from = null; this.at = null; this.cursor.replaceChildren(); this.readout.textContent = ""; });
      this.canvas.addEventListener("dblclick", () => { this.zoom = null; this.draw(); });
      this.canvas.addEventListener("keydown", (event) => {
        const points = this.points();
        const i = this.at === null ? -1 : this.nearest(points, this.at);
        const step = event.shiftKey ? 10 : 1;
        const go = (n) => this.move(points[Math.max(0, Math.min(points.length - 1, n))], true);
        switch (event.key) {
          case "ArrowRight": go(i + step); break;
          case "ArrowLeft": go(i < 0 ? points.length - 1 : i - step); break;
          case "Home": go(0); break;
          case "End": go(points.length - 1); break;
          case "+": case "=": this.scale(0.5); break;
          case "-": this.scale(2); break;
          case "Escape": this.zoom = null; this.at = null; this.draw(); break;
          default: return;
        }
        event.preventDefault();
      });
    }

    scale(factor) {
      const whole = (() => { const z = this.zoom; this.zoom = null; const e = this.extent("x"); this.zoom = z; return e; })();
      const [a, b] = this.domain, middle = this.at ?? (a + b) / 2;
      const half = (b - a) / 2 * factor;
      const next = [Math.max(whole[0], middle - half), Math.min(whole[1], middle + half)];
      this.zoom = next[0] <= whole[0] && next[1] >= whole[1] ? null : next;
      this.draw();
    }
  }

  const plots = [...document.querySelectorAll(".plot")].map((box) => new Plot(box));
  let timer = 0;
  new ResizeObserver(() => { clearTimeout(timer); timer = setTimeout(() => plots.forEach((p) => { if (p.canvas.clientWidth !== p.width) p.draw(); }), 80); }).observe(document.body);
  addEventListener("beforeprint", () => plots.forEach((p) => p.draw()));
  const toggle = document.getElementById("theme");
  toggle.addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  });
  document.body.dataset.ready = "true";
})();
