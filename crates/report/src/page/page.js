// The plots are drawn already. This adds a cursor with a readout, zoom, a legend that hides lines, and
// the switch between linear and logarithmic. Nothing is loaded.
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const PADDING = { left: 64, right: 16 }; // of svg.frame, in page.css
  const WIDE = 10000, TALL = 2000, TICKS = 5, DEEPEST = 1 / 200; // as in svg.rs
  const el = (name, attributes, text) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // Figures with units, three digits: as in figures.rs.
  const plain = (v) => {
    const a = Math.abs(v);
    if (a === 0) return "0";
    if (a < 1e-3 || a >= 1e15) return v.toExponential(2);
    return a >= 99.95 || Number.isInteger(v) ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(3)));
  };
  const scaled = (v, base, units) => {
    let i = 0;
    while (i + 1 < units.length && Math.abs(v) >= base * 0.9995) { v /= base; i += 1; }
    return plain(v) + " " + units[i];
  };
  const figure = (v, unit) => {
    if (v === null || v === undefined) return "—";
    switch (unit) {
      case "ns": return scaled(v, 1000, ["ns", "µs", "ms", "s"]);
      case "bytes": return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
      case "bytes/s": return figure(v, "bytes") + "/s";
      case "share": return plain(v * 100) + "%";
      case "bytes/Minstr": return figure(v, "bytes") + "/Minstr";
      case "instr": return plain(v) + " instr";
      case "/Minstr": return plain(v) + "/Minstr";
      default: return plain(v);
    }
  };
  const tick = (v, unit) => (unit !== "" || Math.abs(v) < 1e4 ? figure(v, unit) : v >= 1e6 ? plain(v / 1e6) + " M" : plain(v / 1e3) + " k");

  // Round figures between low and high: as in scale.rs.
  const ticks = (low, high, log, binary) => {
    if (log && binary) {
      const from = Math.ceil(Math.log2(low)), to = Math.floor(Math.log2(high)), every = Math.max(1, Math.ceil((to - from + 1) / TICKS));
      const list = Array.from({ length: Math.max(0, Math.ceil((to - from + 1) / every)) }, (_, n) => 2 ** (from + n * every));
      if (list.length > 1) return list;
    } else if (log) {
      const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high)), list = [];
      const every = Math.max(1, Math.ceil((to - from) / TICKS));
      for (let e = Math.ceil(from / every) * every; e <= to; e += every) {
        for (const m of to - from <= 2 ? [1, 2, 5] : [1]) if (m * 10 ** e >= low && m * 10 ** e <= high) list.push(m * 10 ** e);
      }
      if (list.length > 1) return list;
    }
    const radix = binary ? 2 : 10, raw = (high - low) / TICKS;
    const power = radix ** Math.floor(Math.log(raw) / Math.log(radix));
    const step = [1, 2, 5, 10].filter((m) => !binary || m < 4).map((m) => m * power).find((s) => s >= raw * 0.999) || raw;
    const first = Math.ceil(low / step), last = Math.floor(high / step);
    return Array.from({ length: Math.max(0, Math.min(50, last - first + 1)) }, (_, n) => (first + n) * step);
  };

  const nearest = (xs, x) => {
    let best = -1;
    xs.forEach((v, i) => { if (v !== null && (best < 0 || Math.abs(v - x) < Math.abs(xs[best] - x))) best = i; });
    return best;
  };

  // The figure of a curve at x: a step holds until the next; of other lines the nearest, within their ends.
  const under = (curve, xs, x) => {
    if (curve.step) return xs.findLastIndex((v) => v !== null && v <= x);
    const known = xs.filter((v) => v !== null);
    return known.length === 0 || x < known[0] || x > known[known.length - 1] ? -1 : nearest(xs, x);
  };

  class Plot {
    constructor(box) {
      this.box = box;
      this.data = JSON.parse(box.querySelector("script").textContent);
      this.svg = box.querySelector("svg.frame");
      this.cursor = box.querySelector(".cursor");
      this.readout = box.querySelector(".readout");
      this.height = Number(this.svg.dataset.height);
      this.foot = Number(this.svg.dataset.foot);
      this.hidden = new Set();
      this.view = [0, 1]; // what is shown, in shares of the abscissa
      this.span = [0, 1]; // and of the ordinate that is shown
      this.at = null;
      this.buttons();
      this.listen();
    }

    get y() { return this.data.y.scales.find(([log]) => log === (this.box.dataset.scale === "log")) || this.data.y.scales[0]; }
    get shown() { return this.data.curves.filter((_, i) => !this.hidden.has(i)); }

    static share([log, low, high], v) { return log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low); }
    static value([log, low, high], share) { return log ? low * (high / low) ** share : low + (high - low) * share; }
    // Where a figure of the abscissa is in what is shown, and which figure is there.
    place(x) { return (Plot.share(this.data.x.scales[0], x) - this.view[0]) / (this.view[1] - this.view[0]); }
    figureAt(share) { return Plot.value(this.data.x.scales[0], this.view[0] + share * (this.view[1] - this.view[0])); }

    zoom(from, to) {
      const width = Math.min(1, Math.max(DEEPEST, to - from));
      const start = Math.min(1 - width, Math.max(0, from));
      this.view = [start, start + width];
      for (const part of this.svg.querySelectorAll(".zooms")) part.setAttribute("viewBox", `${start * WIDE} 0 ${width * WIDE} ${TALL}`);
      this.refit();
      for (const text of this.svg.querySelectorAll("[data-at]")) {
        const at = (Number(text.dataset.at) - start) / width;
        text.setAttribute("x", `${at * 100}%`);
        text.classList.toggle("off", at < 0 || at > 1);
      }
      const { unit, page, scales: [[log]] } = this.data.x;
      const marks = ticks(this.figureAt(0), this.figureAt(1), log, unit.startsWith("bytes")).flatMap((v) => {
        const x = `${this.place(v) * 100}%`;
        const pages = page ? [el("text", { x, y: this.foot + 31, class: "second" }, tick(v / page, ""))] : [];
        return [el("line", { x1: x, x2: x, y1: this.foot, y2: this.foot + 4 }), el("text", { x, y: this.foot + 17 }, tick(v, unit)), ...pages];
      });
      this.svg.querySelector(".xticks").replaceChildren(...marks);
      this.draw(false);
    }

    // Fits each way to draw the ordinate to what is shown of the lines; all of it where all is shown.
    refit() {
      const whole = this.view[0] <= 0 && this.view[1] >= 1;
      for (const scale of this.data.y.scales) {
        const group = this.svg.querySelector(scale[0] ? ":scope > .log" : ":scope > .linear"), grid = group?.querySelector(".grid");
        if (!grid || group.querySelector(".cell")) continue;
        const places = whole ? [] : this.within(scale), room = 0.05;
        let low = Math.min(...places), high = Math.max(...places);
        if (!(high > low)) [low, high] = [0, 1]; else [low, high] = [Math.max(0, low - (high - low) * room), Math.min(1, high + (high - low) * room)];
        if (scale === this.y) this.span = [low, high];
        const [x, , width] = group.querySelector(".zooms").getAttribute("viewBox").split(" ");
        group.querySelector(".zooms").setAttribute("viewBox", `${x} ${(1 - high) * TALL} ${width} ${(high - low) * TALL}`);
        const { unit } = this.data.y, at = (share) => Plot.value(scale, share);
        grid.replaceChildren(...ticks(at(low), at(high), scale[0], unit.startsWith("bytes")).flatMap((v) => {
          const y = (1 - (Plot.share(scale, v) - low) / (high - low)) * this.height;
          return [el("line", { x1: 0, x2: "100%", y1: y, y2: y }), el("text", { x: -8, y, dy: 4 }, tick(v, unit))];
        }));
      }
    }

    // The places on a scale of what is shown of the lines.
    within(scale) {
      return this.shown.filter((curve) => curve.on).flatMap((curve) => {
        const xs = this.data.xs[curve.xs];
        const inside = xs.map((x, i) => (x !== null && this.place(x) >= 0 && this.place(x) <= 1 ? curve.y[i] : null));
        if (curve.step) inside.push(curve.y[under(curve, xs, this.figureAt(0))] ?? null);
        return inside.filter((v) => v !== null && (!scale[0] || v > 0)).map((v) => Plot.share(scale, v));
      });
    }

    // The cursor and what is under it.
    draw(speak) {
      this.cursor.replaceChildren();
      const at = this.at === null ? -1 : this.place(this.at);
      this.readout.setAttribute("aria-live", speak ? "polite" : "off");
      if (at < -0.001 || at > 1.001) { this.readout.textContent = ""; return; }
      const x = `${at * 100}%`;
      this.cursor.append(el("line", { x1: x, x2: x, y1: 0, y2: this.foot }));
      const words = [`${this.data.x.label} ${figure(this.at, this.data.x.unit)}`];
      for (const curve of this.shown) {
        const xs = this.data.xs[curve.xs], i = under(curve, xs, this.at), v = i < 0 ? null : curve.y[i];
        if (curve.step && v === null) continue;
        words.push(`${curve.name} ${figure(v, curve.unit)}`);
        const up = v === null ? null : (Plot.share(this.y, v) - this.span[0]) / (this.span[1] - this.span[0]);
        if (curve.on && Number.isFinite(up)) this.cursor.append(el("circle", { cx: `${this.place(curve.step ? this.at : xs[i]) * 100}%`, cy: (1 - up) * this.height, r: 4, class: `c${curve.color % 6}` }));
      }
      this.readout.textContent = words.join(" · ");
    }

    buttons() {
      const scale = this.box.querySelector("button.scale");
      scale?.addEventListener("click", () => {
        const log = this.box.dataset.scale !== "log";
        this.box.dataset.scale = log ? "log" : "linear";
        scale.textContent = log ? "logarithmic" : "linear";
        this.refit();
        this.draw(false);
      });
      for (const button of this.box.querySelectorAll("[data-series]")) {
        button.addEventListener("click", () => {
          const n = Number(button.dataset.series), hide = !this.hidden.has(n);
          this.hidden[hide ? "add" : "delete"](n);
          button.setAttribute("aria-pressed", String(!hide));
          for (const line of this.svg.querySelectorAll(`.s${n}`)) line.classList.toggle("off", hide);
          this.refit();
          this.draw(false);
        });
      }
    }

    // The abscissae that are shown, ascending.
    points() {
      const all = new Set(this.shown.flatMap((curve) => this.data.xs[curve.xs]));
      return [...all].filter((x) => x !== null && this.place(x) >= 0 && this.place(x) <= 1).sort((a, b) => a - b);
    }

    listen() {
      const share = (event) => {
        const box = this.svg.getBoundingClientRect();
        return Math.min(1, Math.max(0, (event.clientX - box.left - PADDING.left) / (box.width - PADDING.left - PADDING.right)));
      };
      let from = null;
      this.svg.addEventListener("pointermove", (event) => {
        const here = share(event), points = this.points(), i = nearest(points, this.figureAt(here));
        this.at = i < 0 ? null : points[i];
        this.draw(false);
        if (from !== null) this.cursor.append(el("rect", { x: `${Math.min(from, here) * 100}%`, y: 0, width: `${Math.abs(here - from) * 100}%`, height: this.height, class: "drag" }));
      });
      this.svg.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType !== "touch") { from = share(event); this.svg.setPointerCapture(event.pointerId); } });
      this.svg.addEventListener("pointerup", (event) => {
        if (from === null) return;
        const [a, b] = [from, share(event)].sort((p, q) => p - q), [start, end] = this.view;
        from = null;
        if (b - a > 0.01) this.zoom(start + a * (end - start), start + b * (end - start)); else this.draw(false);
      });
      this.svg.addEventListener("pointercancel", () => { from = null; });
      this.svg.addEventListener("pointerleave", () => { if (from === null) { this.at = null; this.draw(false); } });
      this.svg.addEventListener("dblclick", () => this.zoom(0, 1));
      this.svg.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const points = this.points(), i = this.at === null ? -1 : nearest(points, this.at), step = event.shiftKey ? 10 : 1;
        const go = (n) => { this.at = points[Math.max(0, Math.min(points.length - 1, n))] ?? null; this.draw(true); };
        const scale = (factor) => {
          const [start, end] = this.view, half = (end - start) / 2 * factor;
          const middle = this.at === null ? (start + end) / 2 : Plot.share(this.data.x.scales[0], this.at);
          this.zoom(middle - half, middle + half);
        };
        switch (event.key) {
          case "ArrowRight": go(i + step); break;
          case "ArrowLeft": go(i < 0 ? points.length - 1 : i - step); break;
          case "Home": go(0); break;
          case "End": go(points.length - 1); break;
          case "+": case "=": scale(0.5); break;
          case "-": scale(2); break;
          case "Escape": this.at = null; this.zoom(0, 1); break;
          default: return;
        }
        event.preventDefault();
      });
    }
  }

  for (const box of document.querySelectorAll(".plot[data-scale]")) new Plot(box);
  // A table that is wider than the page says that it scrolls.
  const hint = (box) => box.classList.toggle("more", box.scrollWidth > box.clientWidth + 2);
  const widths = new ResizeObserver((changes) => changes.forEach(({ target }) => hint(target)));
  for (const box of document.querySelectorAll(".scroll")) {
    box.prepend(Object.assign(document.createElement("p"), { className: "hint", textContent: "scroll sideways for more →" }));
    widths.observe(box);
  }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  });
  document.body.dataset.ready = "true";
})();
