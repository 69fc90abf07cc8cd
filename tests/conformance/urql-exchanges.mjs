// urql with subscriptions over server-sent events, forced GET, and persisted documents; prints each step as a line
// of JSON, with the requests that it took.
import { Client, fetchExchange } from "@urql/core";
import { persistedExchange } from "@urql/exchange-persisted";

const { url } = JSON.parse(process.argv[2]);
let requests = [];

async function counted(input, init) {
  const response = await fetch(input, init);
  const hasQuery = init.method === "GET" ? new URL(input).searchParams.has("query") : "query" in JSON.parse(init.body);
  const type = response.headers.get("content-type").split(";")[0];
  requests.push({ method: init.method, hasQuery, status: response.status, type });
  return response;
}

function client(options, ...exchanges) {
  return new Client({
    url,
    fetch: counted,
    fetchOptions: { headers: { "graphql-preflight": "1" } },
    requestPolicy: "network-only",
    exchanges: [...exchanges, fetchExchange],
    ...options,
  });
}

function print(step, results) {
  const told = results.map(({ data, error }) => ({
    data,
    ...(error && { codes: error.graphQLErrors.map((each) => each.extensions.code), network: error.networkError?.message }),
  }));
  console.log(JSON.stringify({ step, results: told, requests }));
  requests = [];
}

function follow(client, query) {
  return new Promise((resolve) => {
    const results = [];
    client.subscription(query, {}).subscribe((result) => {
      // When the stream completes, urql shows the last result once more, marked as the last.
      if (result.hasNext) results.push(result);
      else resolve(results);
    });
  });
}

const plain = client({ fetchSubscriptions: true, preferGetMethod: "force" });
print("forced GET", [await plain.query("query Q($name: String) { hello(name: $name) }", { name: "Ça va? 👩‍👩‍👧 & +" })]);
print("subscription", await follow(plain, "subscription { count(to: 2) }"));
print("broken subscription", await follow(plain, "subscription { breaking(after: 1) }"));
print("invalid subscription", await follow(plain, "subscription { xyz }"));
print("invalid", [await plain.query("{ xyz }")]);
print("partial", [await plain.query("{ hello refused }")]);

const automatic = client({ fetchSubscriptions: true }, persistedExchange({ enableForMutation: true, enableForSubscriptions: true }));
const text = "query Persisted { hello }";
print("miss", [await automatic.query(text)]);
print("hit", [await automatic.query(text)]);
print("mutation", [await automatic.mutation("mutation Set { set(value: 5) }")]);
print("mutation again", [await automatic.mutation("mutation Set { set(value: 5) }")]);
print("persisted subscription", await follow(automatic, "subscription Persisted { count(to: 1) }"));
print("by POST", [await client({}, persistedExchange({ preferGetForPersistedQueries: false })).query(text)]);

const enforced = client({}, persistedExchange({ enforcePersistedQueries: true }));
print("enforced", [await enforced.query(text)]);
print("enforced miss", [await enforced.query("query Unknown { hello }")]);
