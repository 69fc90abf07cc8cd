// Apollo Client over its links; prints each step as a line of JSON, with the requests that it took.
import { createHash } from "node:crypto";
import { ApolloClient, gql, InMemoryCache } from "@apollo/client/core/index.js";
import { CombinedGraphQLErrors, CombinedProtocolErrors } from "@apollo/client/errors/index.js";
import { Defer20220824Handler, GraphQL17Alpha9Handler } from "@apollo/client/incremental/index.js";
import { BatchHttpLink } from "@apollo/client/link/batch-http/index.js";
import { HttpLink } from "@apollo/client/link/http/index.js";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries/index.js";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions/index.js";
import UploadHttpLink from "apollo-upload-client/UploadHttpLink.mjs";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const { url, socketUrl } = JSON.parse(process.argv[2]);
// Enough for GET requests and forms to be let in.
const headers = { "apollo-require-preflight": "true" };
let requests = [];

async function counted(input, init) {
  const response = await fetch(input, init);
  const type = response.headers.get("content-type").split(";")[0];
  const asked = typeof init.body === "string" ? JSON.parse(init.body) : Object.fromEntries(new URL(input).searchParams);
  requests.push({
    method: init.method,
    hasQuery: Array.isArray(asked) ? asked.map((each) => "query" in each) : "query" in asked,
    status: response.status,
    type,
  });
  return response;
}

function client(link, options) {
  const cache = new InMemoryCache();
  return new ApolloClient({ link, cache, defaultOptions: { query: { fetchPolicy: "network-only" } }, ...options });
}

function told({ data, error }) {
  if (!error) return { data };
  const isOurs = CombinedGraphQLErrors.is(error) || CombinedProtocolErrors.is(error);
  const codes = isOurs ? error.errors.map((each) => each.extensions.code) : String(error);
  return { data, kind: error.name, codes };
}

async function step(name, work) {
  let results;
  try {
    const result = await work();
    results = Array.isArray(result) ? result.map(told) : [told(result)];
  } catch (error) {
    results = [told({ error })];
  }
  console.log(JSON.stringify({ step: name, results, requests }));
  requests = [];
}

function follow(client, query) {
  return new Promise((resolve, reject) => {
    const results = [];
    client.subscribe({ query }).subscribe({
      next: (result) => results.push(result),
      error: reject,
      complete: () => resolve(results),
    });
  });
}

const http = { uri: url, fetch: counted, headers };
const plain = client(new HttpLink(http));
const partial = gql`
  query Partial {
    hello
    refused
  }
`;
await step("query", () => plain.query({ query: gql("query Hello($name: String) { hello(name: $name) }"), variables: { name: "Ça va? 👩‍👩‍👧" } }));
await step("mutation", () => plain.mutate({ mutation: gql("mutation { set(value: 3) }") }));
for (const errorPolicy of ["none", "all", "ignore"]) {
  await step(`errors: ${errorPolicy}`, () => plain.query({ query: partial, errorPolicy }));
}
await step("invalid", () => plain.query({ query: gql("{ xyz }") }));
await step("by GET", () => client(new HttpLink({ ...http, useGETForQueries: true })).query({ query: gql("{ hello }") }));
await step("subscription", () => follow(plain, gql("subscription { count(to: 3) }")));
await step("broken subscription", () => follow(plain, gql("subscription { breaking(after: 1) }")));
await step("invalid subscription", () => follow(plain, gql("subscription { xyz }")));

for (const Handler of [Defer20220824Handler, GraphQL17Alpha9Handler]) {
  const deferring = client(new HttpLink(http), { incrementalHandler: new Handler() });
  await step(`with ${Handler.name}`, () => deferring.query({ query: gql("{ hello }") }));
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
for (const useGETForHashedQueries of [false, true]) {
  const how = useGETForHashedQueries ? "GET" : "POST";
  const persisted = client(new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(new HttpLink(http)));
  const query = gql(`query By${how} { hello }`);
  await step(`miss by ${how}`, () => persisted.query({ query }));
  await step(`hit by ${how}`, () => persisted.query({ query }));
}

const batching = client(new BatchHttpLink({ ...http, batchInterval: 5 }));
await step("batch", () =>
  Promise.all(["{ hello }", "{ xyz }", "query Other { refused }"].map((text) => batching.query({ query: gql(text), errorPolicy: "all" }))),
);

const uploading = client(new UploadHttpLink({ uri: url, headers }));
await step("upload", () =>
  uploading.mutate({
    mutation: gql("mutation Files($files: [Upload!]!) { readFiles(files: $files) }"),
    variables: { files: ["Erste", "второй"].map((text, index) => new File([text], `${index}.txt`)) },
  }),
);

const sockets = createClient({ url: socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
await step("over a socket", () => follow(client(new GraphQLWsLink(sockets)), gql("subscription { count(to: 2) }")));
await sockets.dispose();
