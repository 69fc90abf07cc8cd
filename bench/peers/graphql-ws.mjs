// The peer of W6: graphql-ws on ws and graphql-js, with our schema. It stores nothing: `POST /play` gives it the events
// of a run and how many of them to publish a second, 0 for as fast as can be; whoever subscribed to the run gets them.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { buildSchema } from "graphql";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const schema = buildSchema(readFileSync(process.argv[2], "utf8"));

// A run's events so far. Subscribers hold places in it and share the promise of a change.
class Log {
  events = [];
  isOver = false;

  constructor() {
    this.#promise();
  }

  #promise() {
    this.changed = new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  change(event) {
    if (event) this.events.push(event);
    else this.isOver = true;
    const { wake } = this;
    this.#promise();
    wake();
  }
}

const logs = new Map();
function logOf(run) {
  if (!logs.has(run)) logs.set(run, new Log());
  return logs.get(run);
}

// Node tells whole milliseconds of the wall clock; what must be added to its other clock shows when they change.
let offset = 0;
function setClock() {
  offset = 0;
  for (const end = performance.now() + 3; performance.now() < end; ) {
    offset = Math.max(offset, Date.now() - performance.now());
  }
}

// As Python writes it, in microseconds.
function now() {
  const microseconds = Math.round((offset + performance.now()) * 1000);
  const toMilliseconds = new Date(Math.floor(microseconds / 1000)).toISOString().slice(0, -1);
  return `${toMilliseconds}${String(microseconds % 1000).padStart(3, "0")}+00:00`;
}

async function* follow(run) {
  const log = logOf(run);
  yield { __typename: "StreamOpened", seq: 0, at: now() };
  for (let place = 0; ; ) {
    while (place < log.events.length) yield log.events[place++];
    if (log.isOver) return;
    await log.changed;
  }
}

async function play({ run, events, rate }) {
  const log = logOf(run);
  setClock();
  const began = performance.now();
  for (const [place, event] of events.entries()) {
    if (rate) await sleep(Math.max(began + (place * 1000) / rate - performance.now(), 0));
    else await turn();
    log.change({ ...event, at: now() });
  }
  log.change();
  logs.delete(run);
}

const field = schema.getSubscriptionType().getFields().runEvents;
field.subscribe = (_, { runId }) => follow(runId);
field.resolve = (event) => event;

const http = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  response.setHeader("content-type", "application/json").end("true");
  await play(JSON.parse(Buffer.concat(pieces)));
});
// Nobody here goes silent, so nobody is pinged.
useServer({ schema }, new WebSocketServer({ server: http, path: "/graphql" }), 0);
http.listen(0, "127.0.0.1", () => console.log(`graphql-ws is ready at http://127.0.0.1:${http.address().port}`));
