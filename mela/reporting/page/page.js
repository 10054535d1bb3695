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

  const map = document.getElementById("map-class"), maps = document.querySelectorAll(".maps svg");
  const choose = (label) => {
    map.value = label;
    for (const svg of maps) {
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

  const large = document.getElementById("large"), body = document.getElementById("large-body");
  const zoom = document.getElementById("zoom"), slider = zoom.querySelector("input");
  const enlarge = (title, content) => {
    document.getElementById("large-title").textContent = title;
    zoom.hidden = !content.matches("svg");
    slider.value = 100;
    body.style.setProperty("--zoom", 100);
    body.replaceChildren(content);
    large.showModal();
  };
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
  slider.addEventListener("input", () => {
    // what is in the middle stays there
    const x = (body.scrollLeft + body.clientWidth / 2) / body.scrollWidth;
    const y = (body.scrollTop + body.clientHeight / 2) / body.scrollHeight;
    body.style.setProperty("--zoom", slider.value);
    body.scrollTo(x * body.scrollWidth - body.clientWidth / 2, y * body.scrollHeight - body.clientHeight / 2);
  });
  for (const button of document.querySelectorAll(".enlarge")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const svg = button.closest("figure").querySelector("svg"), gap = document.createElement("div");
      gap.style.height = `${svg.getBoundingClientRect().height}px`;
      svg.replaceWith(gap);
      enlarge(button.closest("section").querySelector("h2").textContent, svg);
      large.addEventListener("close", () => gap.replaceWith(svg), { once: true });
    });
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

  for (const card of cards) {
    card.querySelector(".zoom").addEventListener("click", () => {
      enlarge(card.querySelector("h3").textContent, card.querySelector("img").cloneNode());
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
})();
