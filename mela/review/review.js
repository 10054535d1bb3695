"use strict";

const at = (id) => document.getElementById(id);
let question = null;
let busy = false;
let named = Promise.resolve();

function make(tag, text, kind) {
  const element = document.createElement(tag);
  // names are those of users: text, never markup
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function picture(number, label, task) {
  const image = make("img");
  image.src = `image/${number}`;
  image.alt = `${label} by ${task}`;
  return image;
}

function heading(tag, shown) {
  const element = make(tag, `${shown.label} `);
  element.append(make("span", `by ${shown.task}`));
  return element;
}

function naming(shown, number) {
  const form = make("form", undefined, "name");
  const label = make("label", "Its class is called ");
  const input = make("input");
  input.id = `name-${number}`;
  input.value = shown.called;
  input.maxLength = 60;
  input.autocomplete = "off";
  input.spellcheck = false;
  // unlike an answer, a name leaves the question as it is, so that typing and answering do not get in each other's way
  input.addEventListener("change", () => {
    named = ask("name", { row: shown.row, name: input.value }, called);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    input.blur();
  });
  label.append(input);
  form.append(label);
  return form;
}

function side(shown, number) {
  const section = make("section");
  section.append(heading("h2", shown), naming(shown, number));
  const images = make("ul", undefined, "images");
  for (const number of shown.images) {
    const item = make("li");
    item.append(picture(number, shown.label, shown.task));
    images.append(item);
  }
  section.append(images);
  if (shown.members.length) {
    section.append(make("h3", `It stands for ${shown.size} labels, also:`));
    const members = make("ul", undefined, "members");
    for (const other of shown.members) {
      const item = make("li");
      item.append(picture(other.images[0], other.label, other.task), make("div", other.label), make("span", other.task));
      members.append(item);
    }
    section.append(members);
  }
  return section;
}

function figure(name, value) {
  const line = make("div");
  line.append(make("dt", name), make("dd", value));
  return line;
}

function show(state) {
  question = state.question;
  at("sides").replaceChildren(...(question ? question.sides.map(side) : []));
  at("why").textContent = question
    ? `They are ${question.joined ? "one class" : "two classes"} so far, and ${Math.round(100 * question.same)}% likely to be the same.`
    : "Nothing is left to ask: no answer is expected to change the classes.";
  figures(state);
  for (const id of ["same", "different", "skip"]) at(id).disabled = !question;
  // a button that is switched off would take the focus with it
  if (!question && document.activeElement === document.body) at("undo").focus();
}

function called(state) {
  // of both sides, which may be one class
  if (question?.one !== state.question?.one || question?.other !== state.question?.other) return show(state);
  state.question?.sides.forEach((shown, number) => {
    const input = at(`name-${number}`);
    if (input !== document.activeElement) input.value = shown.called;
  });
  figures(state);
}

function figures(state) {
  at("figures").replaceChildren(
    figure("answers", state.answers),
    figure("skipped", state.skipped),
    figure("questions left", state.more ? `${state.left} or more` : state.left),
    figure("classes", state.classes),
    figure("classes with one label", state.alone),
    figure("classes with a name", state.named),
    ...(state.expected_ari === null ? [] : [figure("expected Rand index", state.expected_ari.toFixed(3))]),
  );
  at("status").textContent = state.changed;
  at("table").textContent = state.table;
  at("names").textContent = state.names;
  at("undo").disabled = !state.undo;
}

async function ask(path, content, then = show) {
  const answers = then === show;
  if (answers && busy) return;
  if (answers) {
    busy = true;
    at("sides").setAttribute("aria-busy", "true");
    // undo takes back what was done last
    await named;
  }
  at("problem").hidden = true;
  try {
    const options = content === undefined ? {} : { method: "POST", body: JSON.stringify(content), headers: { "Content-Type": "application/json" } };
    const answer = await fetch(path, options);
    const told = await answer.json();
    if (answer.ok) then(told);
    else {
      problem(told.error);
      if (answer.status === 409) show(await (await fetch("state")).json());
    }
  } catch {
    problem("The program behind this page does not answer. Start `mela review` again; what you answered is kept.");
  } finally {
    if (answers) {
      busy = false;
      at("sides").removeAttribute("aria-busy");
    }
  }
}

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = false;
}

function give(answer) {
  if (question) ask("answer", { one: question.one, other: question.other, answer });
}

const ACTIONS = { s: () => give("same"), d: () => give("different"), k: () => give("skip"), u: () => at("undo").disabled || ask("undo", {}) };

for (const [id, key] of Object.entries({ same: "s", different: "d", skip: "k", undo: "u" })) at(id).addEventListener("click", ACTIONS[key]);
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !at("keys").checked || event.target.matches(".name input")) return;
  ACTIONS[event.key.toLowerCase()]?.();
});
// whoever speaks to the machine, or hits keys by mistake, can switch them off for good: a cookie is of all ports
at("keys").checked = !document.cookie.includes("keys=off");
at("keys").addEventListener("change", () => {
  document.cookie = `keys=${at("keys").checked ? "on" : "off"}; path=/; max-age=31536000; samesite=strict`;
});
ask("state");
