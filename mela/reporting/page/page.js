"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const names = { "": "as the system", light: "light", dark: "dark" };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const all = Object.keys(names);
    const next = all[(all.indexOf(root.dataset.theme || "") + 1) % all.length];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    theme.textContent = `Theme: ${names[next]}`;
  });

  const map = document.getElementById("map-class");
  const choose = (label) => {
    map.value = label;
    for (const svg of document.querySelectorAll(".maps svg")) {
      svg.classList.toggle("chosen", label !== "");
      for (const circle of svg.querySelectorAll("circle")) {
        circle.classList.toggle("chosen", circle.dataset.label === label);
      }
    }
  };
  document.getElementById("map-tools").hidden = false;
  map.addEventListener("change", () => choose(map.value));
  for (const circle of document.querySelectorAll(".maps circle")) {
    circle.addEventListener("click", () => choose(map.value === circle.dataset.label ? "" : circle.dataset.label));
  }

  const sheets = document.getElementById("sheets");
  if (!sheets) return;
  const cards = [...sheets.children];
  const filter = document.getElementById("filter");
  const orders = {
    doubt: (a, b) => a.dataset.doubt - b.dataset.doubt,
    purity: (a, b) => a.dataset.purity - b.dataset.purity,
    large: (a, b) => b.dataset.size - a.dataset.size,
    small: (a, b) => a.dataset.size - b.dataset.size,
    label: (a, b) => a.dataset.label - b.dataset.label,
  };
  const apply = () => {
    const text = filter.elements.text.value.trim().toLowerCase();
    const mixed = filter.elements.mixed?.checked;
    const number = cards.some((card) => card.dataset.label === text);
    let shown = 0;
    for (const card of cards) {
      const written = [...card.querySelectorAll("h3 bdi, .written .label")].map((label) => label.textContent);
      const name = [card.dataset.name || "", ...written].join("\n").toLowerCase();
      const found = text === "" || (number ? card.dataset.label === text : name.includes(text));
      card.hidden = !found || (mixed && card.dataset.classes === "1");
      shown += !card.hidden;
    }
    sheets.append(...[...cards].sort(orders[filter.elements.order.value]));
    filter.elements.count.value = `${shown} of ${cards.length} shown`;
  };
  filter.hidden = false;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  apply();

  const large = document.getElementById("large");
  for (const card of cards) {
    card.querySelector(".zoom").addEventListener("click", () => {
      document.getElementById("large-title").textContent = card.querySelector("h3").textContent;
      document.getElementById("large-body").replaceChildren(card.querySelector("img").cloneNode());
      large.showModal();
    });
    const show = card.querySelector(".show");
    if (show) {
      show.hidden = false;
      show.addEventListener("click", () => {
        choose(show.dataset.label);
        document.getElementById("map").scrollIntoView();
        map.focus({ preventScroll: true });
      });
    }
  }
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
})();
