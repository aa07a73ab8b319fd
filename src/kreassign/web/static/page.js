// Behaviour of the pages: follow a run, and send its operator's requests. Text is inserted as text, never as markup:
// names come from clusters.
"use strict";

const TOKEN = "kreassign-token";
const ROLES = "kreassign-roles";
const API = "/api/v1";

// --- following a run ---

function follow(page) {
  const source = new EventSource(`/runs/${page.dataset.run}/live`);
  source.addEventListener("run", (event) => keepFocus(() => show(page, JSON.parse(event.data))));
  source.addEventListener("end", () => source.close());
}

// What is shown or hidden in `change` must not take the focus with it: who uses a keyboard would be nowhere.
function keepFocus(change) {
  const focused = document.activeElement;
  change();
  if (focused === document.body || isShown(focused)) return;
  for (let around = focused.parentElement; around; around = around.parentElement) {
    const next = [...around.querySelectorAll("a[href], button, input, select, summary, [tabindex]")].find(isShown);
    if (next) return next.focus();
  }
}

const isShown = (place) => place.checkVisibility();

function show(page, run) {
  for (const place of page.querySelectorAll("[data-field]")) {
    setText(place, run.fields[place.dataset.field]);
  }
  page.dataset.stage = run.stage;
  const badge = page.querySelector("[data-tone]");
  badge.className = `badge ${run.tone}`;
  const progress = page.querySelector("[data-progress]");
  if (run.fraction === null) progress.removeAttribute("value");
  else progress.value = run.fraction;
  for (const place of page.querySelectorAll("[data-list]")) showList(place, run.lists[place.dataset.list]);
  for (const place of page.querySelectorAll("[data-table]")) showRows(place, run.tables[place.dataset.table]);
  for (const place of page.querySelectorAll("[data-chart]")) showChart(place, run.charts[place.dataset.chart]);
}

function showChart(place, chart) {
  place.hidden = chart.path === "";
  place.querySelector("path").setAttribute("d", chart.path);
  setText(place.querySelector("[data-top]"), chart.top);
  setText(place.querySelector("[data-end]"), chart.end);
}

function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function showList(place, sentences) {
  place.hidden = sentences.length === 0;
  const list = place.querySelector("ul");
  resize(list, sentences.length, () => document.createElement("li"));
  sentences.forEach((sentence, index) => setText(list.children[index], sentence));
}

function showRows(body, rows) {
  resize(body, rows.length, () => document.createElement("tr"));
  rows.forEach((cells, index) => {
    const row = body.children[index];
    resize(row, cells.length, () => {
      const cell = document.createElement(row.children.length ? "td" : "th");
      if (row.children.length) cell.className = "number";
      else cell.scope = "row";
      return cell;
    });
    cells.forEach((cell, column) => setText(row.children[column], cell));
  });
}

function resize(parent, count, make) {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(make());
}

// --- sending requests ---

function showLock() {
  const roles = (sessionStorage.getItem(ROLES) || "").split(" ");
  for (const place of document.querySelectorAll("[data-control]")) place.hidden = !roles.includes(place.dataset.control);
  const lock = document.querySelector("[data-lock]");
  if (!lock) return;
  const isOpen = sessionStorage.getItem(TOKEN) !== null;
  for (const one of lock.querySelectorAll("label, input, button[type=submit]")) one.hidden = isOpen;
  lock.querySelector("[data-lock-again]").hidden = !isOpen;
}

function lock(reason) {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(ROLES);
  document.querySelector("[data-user]").textContent = reason;
  keepFocus(showLock);
}

async function unlock(token) {
  const shown = document.querySelector("[data-user]");
  try {
    const response = await fetch(`${API}/me`, {
      headers: { Authorization: `Bearer ${token}` },
      credentials: "omit",
      redirect: "error",
    });
    const user = response.ok ? await response.json() : { roles: [] };
    if (user.roles.length === 0) return lock("That is no token of this page.");
    sessionStorage.setItem(TOKEN, token);
    sessionStorage.setItem(ROLES, user.roles.join(" "));
    shown.textContent = user.name && `${user.name}: ${user.roles.join(", ")}`;
    keepFocus(showLock);
  } catch (error) {
    lock(`The page does not answer: ${error.message}`);
  }
}

// Answers appear in the card of the button or form.
const answerOf = (place) => place.closest(".card").querySelector("[data-answer]");

async function post(path, content, place) {
  const answer = answerOf(place);
  answer.textContent = "asking…";
  try {
    const response = await fetch(`${API}/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` },
      body: JSON.stringify(content),
      credentials: "omit",
      redirect: "error",
    });
    const found = await response.json();
    answer.textContent = response.ok ? "accepted" : `not done: ${found.detail}`;
    if (response.status === 401) lock("The token is no longer valid.");
    return response.ok ? found : null;
  } catch (error) {
    answer.textContent = `not done: ${error.message}`;
    return null;
  }
}

function subject() {
  const run = document.querySelector("[data-run]");
  return run ? `runs/${run.dataset.run}` : `plans/${document.querySelector("[data-plan]").dataset.plan}`;
}

async function plan(task, place) {
  const found = await post("plans", task, place);
  if (!found) return;
  if (found.name) location.assign(`/plans/${encodeURIComponent(found.name)}`);
  else answerOf(place).textContent = found.sentence;
}

async function preview(path, content, place) {
  const shown = document.querySelector("[data-preview]");
  shown.hidden = true;
  const found = await post(path, content, place);
  if (!found) return;
  answerOf(place).textContent = "";
  const sentences = shown.querySelector("[data-sentences]");
  resize(sentences, found.sentences.length, () => document.createElement("li"));
  found.sentences.forEach((sentence, index) => setText(sentences.children[index], sentence));
  showList(shown.querySelector("[data-warnings]"), found.warnings);
  showRows(shown.querySelector("tbody"), found.rows);
  const more = found.rows.length < found.change_count ? `the first ${found.rows.length} of ` : "";
  shown.querySelector("[data-count]").textContent = `Partitions: ${more}${found.change_count}`;
  const start = shown.querySelector("[data-start]");
  if (start) {
    start.dataset.start = found.preview_id ?? "";
    start.hidden = found.preview_id === null;
  }
  shown.hidden = false;
  shown.querySelector("h3").focus();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("lockAgain" in button.dataset) lock("");
  if ("planBody" in button.dataset) await plan(JSON.parse(button.dataset.planBody), button);
  if (button.dataset.start) {
    const isRun = Boolean(document.querySelector("[data-run]"));
    const begun = await post(`${subject()}/${isRun ? "rollback" : "start"}`, { preview_id: button.dataset.start }, button);
    if (begun) location.assign(`/runs/${encodeURIComponent(begun.run_id)}`);
  }
  if (!button.dataset.post) return;
  if (button.dataset.confirm && !window.confirm(button.dataset.confirm)) return;
  const done = await post(`${subject()}/${button.dataset.post}`, JSON.parse(button.dataset.body), button);
  if (done && "reload" in button.dataset) location.reload();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method === "post") return;
  event.preventDefault();
  if ("lock" in form.dataset) {
    const token = form.token.value.trim();
    form.reset();
    await unlock(token);
  } else if ("throttle" in form.dataset) {
    await post(`${subject()}/throttle`, { bytes_per_s: bytesOf(form.rate) }, form);
  } else if ("pace" in form.dataset) {
    const wanted = { max_moves: asked(form.max_moves), max_moves_per_broker: asked(form.max_moves_per_broker) };
    if (await post(`${subject()}/pace`, { ...wanted, order: form.order.value || null }, form)) form.reset();
  } else if ("approve" in form.dataset) {
    const by = form.approved_by?.value ?? "";
    const wanted = { plan_id: form.dataset.planId, approved_by: by, note: form.note.value };
    if (await post(`${subject()}/approve`, wanted, form)) location.reload();
  } else if ("task" in form.dataset) {
    const [numbers, names] = [namesOf(form.brokers).map(Number), namesOf(form.topics)];
    const factor = asked(form.replication_factor);
    const wanted = { task: form.task.value, brokers: numbers, topics: names, replication_factor: factor };
    await plan({ ...wanted, from_tables: form.from_tables?.checked ?? false }, form);
  } else if ("previewForm" in form.dataset) {
    const isRun = Boolean(document.querySelector("[data-run]"));
    await preview(`${subject()}/${isRun ? "preview-rollback" : "preview"}`, isRun ? {} : wayOf(form), form);
  }
});

// How a run is to be executed: what the form leaves empty is the default.
function wayOf(form) {
  const changed = [...form.querySelectorAll("[data-guard]")].filter((one) => one.value !== one.dataset.usual);
  return {
    throttle_bytes_per_s: form.limit.value === "" ? null : bytesOf(form.limit),
    windows: namesOf(form.windows),
    time_zone: form.time_zone.value.trim() || "UTC",
    order: form.order.value,
    max_moves: asked(form.max_moves),
    max_moves_per_broker: asked(form.max_moves_per_broker),
    guards: changed.map((one) => `${one.dataset.guard}=${one.value}`),
  };
}

const namesOf = (field) => field.value.split(",").map((text) => text.trim()).filter(Boolean);
const asked = (field) => (field.value === "" ? null : Number(field.value));
const bytesOf = (field) => Math.round(Number(field.value) * 1e6);

// Fields of a task: only those that it takes.
function showFields(form) {
  const chosen = form.task.selectedOptions[0].dataset;
  for (const place of form.querySelectorAll("[data-of]")) {
    place.hidden = !chosen.fields.split(" ").includes(place.dataset.of);
    place.required = chosen.needs.split(" ").includes(place.dataset.of);
    if (place.hidden && "value" in place) place.value = "";
  }
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-task]");
  if (form) showFields(form);
});

for (const form of document.querySelectorAll("[data-task]")) showFields(form);
showLock();
if (sessionStorage.getItem(TOKEN)) unlock(sessionStorage.getItem(TOKEN));
for (const page of document.querySelectorAll("[data-live]")) follow(page);
