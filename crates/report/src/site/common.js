// Shared by the index and the comparison. The script loads nothing; the table of runs works without it.
"use strict";
const byId = (id) => document.getElementById(id);
// Creates an element with attributes and content; strings become text nodes, never markup.
const make = (tag, attributes = {}, ...content) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(name, value);
  node.append(...content);
  return node;
};
const hint = (box) => box.classList.toggle("more", box.scrollWidth > box.clientWidth + 2);
const widths = new ResizeObserver((changes) => changes.forEach(({ target }) => hint(target)));
for (const box of document.querySelectorAll(".scroll")) {
  box.prepend(make("p", { class: "hint" }, "scroll sideways for more →"));
  widths.observe(box);
}
byId("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
