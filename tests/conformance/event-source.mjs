// Event streams by EventSource, which cannot send headers, from pages of several origins; prints each step as a line
// of JSON. `other` is a plain page on another port, which we also visit by two more names.
import { launch } from "./chromium.mjs";

const { address, executablePath, other, query, variables } = JSON.parse(process.argv[2]);
const foreign = new URL(other);
foreign.hostname = "foreign.test";
const allowed = new URL(other);
allowed.hostname = "localhost";
const rebound = new URL(address);
rebound.hostname = "rebound.test";

const browser = await launch(
  executablePath,
  "--host-resolver-rules=MAP foreign.test 127.0.0.1, MAP rebound.test 127.0.0.1",
);
const page = await browser.newPage();
const url = `${address}/graphql?${new URLSearchParams({ query, variables: JSON.stringify(variables) })}`;

// In the page: everything that an event source tells until it is complete or fails.
function listen(url) {
  return new Promise((resolve) => {
    const seen = { opened: 0, next: [], complete: [], failed: null };
    const source = new EventSource(url);
    function end() {
      source.close();
      resolve(seen);
    }
    source.onopen = () => (seen.opened += 1);
    source.addEventListener("next", (event) => seen.next.push(JSON.parse(event.data)));
    source.addEventListener("complete", (event) => {
      seen.complete.push(event.data);
      end();
    });
    source.onerror = () => {
      // A source that failed for good is closed; else it will connect again by itself.
      seen.failed = source.readyState === EventSource.CLOSED ? "closed" : "lost";
      end();
    };
  });
}

// In the page: single connection mode. The reservation by fetch, the stream by EventSource.
async function single({ endpoint, query, variables }) {
  const reserved = await fetch(endpoint, { method: "PUT" });
  const token = await reserved.text();
  const source = new EventSource(`${endpoint}?token=${encodeURIComponent(token)}`);
  const seen = { reserved: reserved.status, begun: [], next: {}, complete: [], failed: false };
  source.onerror = () => (seen.failed = true);
  const done = new Promise((resolve) => {
    source.addEventListener("next", ({ data }) => {
      const { id, payload } = JSON.parse(data);
      (seen.next[id] ??= []).push(payload);
    });
    source.addEventListener("complete", ({ data }) => {
      seen.complete.push(JSON.parse(data).id);
      if (seen.complete.length === 2) resolve();
    });
  });
  const headers = { "content-type": "application/json", "x-graphql-event-stream-token": token };
  for (const [operationId, asked] of [
    ["run", { query, variables }],
    ["viewer", { query: "{ viewer { roles } }" }],
  ]) {
    const body = JSON.stringify({ ...asked, extensions: { operationId } });
    seen.begun.push((await fetch(endpoint, { method: "POST", headers, body })).status);
  }
  await done;
  source.close();
  seen.complete.sort();
  return seen;
}

// In the page: what a script there may do to us, by fetch.
async function outcome([endpoint, init]) {
  try {
    return (await fetch(endpoint, init)).status;
  } catch {
    return "blocked";
  }
}

async function step(name, work) {
  const seen = await work();
  console.log(JSON.stringify({ step: name, seen }));
}

const endpoint = `${address}/graphql`;
const json = { method: "POST", headers: { "content-type": "application/json" }, body: '{"query": "{ viewer { roles } }"}' };
const plain = { method: "POST", headers: { "content-type": "text/plain" }, body: json.body };
try {
  await page.goto(address);
  await step("own origin", () => page.evaluate(listen, url));
  await step("single connection", () => page.evaluate(single, { endpoint, query, variables }));
  for (const [name, origin] of [
    ["allowed origin", allowed],
    ["another port", new URL(other)],
    ["another site", foreign],
  ]) {
    await page.goto(origin.href);
    await step(name, () => page.evaluate(listen, url));
    await step(`${name}: PUT`, () => page.evaluate(outcome, [endpoint, { method: "PUT" }]));
    await step(`${name}: POST`, () => page.evaluate(outcome, [endpoint, json]));
    await step(`${name}: text`, () => page.evaluate(outcome, [endpoint, plain]));
  }
  await step("a name that leads to us", async () => (await page.goto(rebound.href)).status());
} finally {
  await browser.close();
}
