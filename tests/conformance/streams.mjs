// Everything that graphql-sse, in distinct or in single connection mode, and graphql-ws can do; prints each step as a
// line of JSON.
import { createClient } from "graphql-sse";
import { createClient as createSocketClient } from "graphql-ws";
import WebSocket from "ws";

const { url, socketUrl, by } = JSON.parse(process.argv[2]);
const client =
  by === "graphql-ws"
    ? createSocketClient({ url: socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 })
    : createClient({ url, singleConnection: by === "graphql-sse, single connection", retryAttempts: 0 });

function print(step, results) {
  console.log(JSON.stringify({ step, results }));
}

// The results; what ended them early comes last: errors over a socket, a status over HTTP.
async function all(query, variables) {
  const results = [];
  try {
    for await (const result of client.iterate({ query, variables })) results.push(result);
  } catch (error) {
    results.push(Array.isArray(error) ? { thrown: error } : { status: error.response?.status ?? String(error) });
  }
  return results;
}

print("query", await all("{ hello }"));
print("mutation", await all("mutation Set($to: Int!) { set(value: $to) }", { to: 7 }));
print("subscription", await all("subscription { count(to: 3) }"));
print("field error", await all("{ hello refused }"));
print("broken source", await all("subscription { breaking(after: 1) }"));
print("invalid", await all("{ xyz }"));

// The gate keeps the connection of single mode open, and lets the server's side look around.
const gated = client.iterate({ query: "subscription { gated { number } }" });
const first = gated.next();
const seen = [];
for await (const result of client.iterate({ query: "subscription { count(to: 1000000, seconds: 0.001) }" })) {
  if (seen.push(result) === 2) break;
}
print("early break", seen);
print("gated", [(await first).value]);
await client.dispose();
