// Behaviour of the pages: follow a run, and send its operator's requests. Text is inserted as text, never as markup:
// names come from clusters.
"use strict";

const TOKEN = "kreassign-token";
const ROLES = "kreassign-roles";
const API = "/api/v1";

// --- following a run ---

function follow(page) {
  const source = new EventSource(`/runs/${page.dataset.run}/live`);
  source.addEventListener("run", (event) => show(page, JSON.parse(event.data)));
  source.addEventListener("end", () => source.close());
}

function show(page, run) {
  for (const place of page.querySelectorAll("[data-field]")) {
    setText(place, run.fields[place.dataset.field]);
  }
  const badge = page.querySelector("[data-tone]");
  badge.className = `badge ${run.tone}`;
  const progress = page.querySelector("[data-progress]");
  if (run.fraction === null) progress.removeAttribute("value");
  else progress.value = run.fraction;
  for (const place of page.querySelectorAll("[data-list]")) showList(place, run.lists[place.dataset.list]);
  for (const place of page.querySelectorAll("[data-table]")) showRows(place, run.tables[place.dataset.table]);
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
  showLock();
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
    showLock();
  } catch (error) {
    lock(`The page does not answer: ${error.message}`);
  }
}

async function post(path, content) {
  const answer = document.querySelector("[data-answer]");
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
    answer.textContent = response.ok ? "done" : `not done: ${found.detail}`;
    if (response.status === 401) lock("The token is no longer valid.");
    return response.ok;
  } catch (error) {
    answer.textContent = `not done: ${error.message}`;
    return false;
  }
}

function subject() {
  const run = document.querySelector("[data-run]");
  return run ? `runs/${run.dataset.run}` : `plans/${document.querySelector("[data-plan]").dataset.plan}`;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("lockAgain" in button.dataset) lock("");
  if (!button.dataset.post) return;
  if (button.dataset.confirm && !window.confirm(button.dataset.confirm)) return;
  const done = await post(`${subject()}/${button.dataset.post}`, JSON.parse(button.dataset.body));
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
    await post(`${subject()}/throttle`, { bytes_per_s: Math.round(Number(form.rate.value) * 1e6) });
  } else if ("pace" in form.dataset) {
    const asked = (field) => (field.value === "" ? null : Number(field.value));
    const wanted = { max_moves: asked(form.max_moves), max_moves_per_broker: asked(form.max_moves_per_broker) };
    if (await post(`${subject()}/pace`, { ...wanted, order: form.order.value || null })) form.reset();
  } else if ("approve" in form.dataset) {
    const wanted = { plan_id: form.dataset.planId, approved_by: form.approved_by?.value ?? "", note: form.note.value };
    if (await post(`${subject()}/approve`, wanted)) location.reload();
  }
});

showLock();
if (sessionStorage.getItem(TOKEN)) unlock(sessionStorage.getItem(TOKEN));
for (const page of document.querySelectorAll("[data-live]")) follow(page);
