// urql with its normalising cache, which knows our schema by introspection; prints one line of JSON.
import { Client, fetchExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { getIntrospectionQuery } from "graphql";

const { url, tree, answer } = JSON.parse(process.argv[2]);
const complaints = [];
for (const level of ["warn", "error"]) console[level] = (...said) => complaints.push(said.join(" "));

async function introspected() {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: getIntrospectionQuery() }),
  });
  return (await response.json()).data;
}

let requests = 0;
const client = new Client({
  url,
  fetch: (...given) => {
    requests += 1;
    return fetch(...given);
  },
  preferGetMethod: false,
  exchanges: [
    cacheExchange({
      schema: await introspected(),
      keys: { UserError: () => null },
      resolvers: { MirrorTree: { nodes: relayPagination() } },
    }),
    fetchExchange,
  ],
});

async function ask(query, variables) {
  const { data, error } = await client.query(query, variables);
  if (error) throw error;
  return data;
}

const TREE = "query Tree($id: ID!) { mirrorTree(id: $id) { id version workingEntry { id } } }";
const PAGE = `query Page($id: ID!, $after: String) {
  mirrorTree(id: $id) {
    id
    nodes(first: 1, after: $after) { edges { cursor node { id content } } pageInfo { hasNextPage endCursor } }
  }
}`;

// One page after the other becomes one list.
const first = (await ask(PAGE, { id: tree })).mirrorTree.nodes;
const both = (await ask(PAGE, { id: tree, after: first.pageInfo.endCursor })).mirrorTree.nodes;

// A change that returns the rows it changed is all that a watcher of the cache needs.
const seen = [];
const watching = client.query(TREE, { id: tree }).subscribe(({ data }) => data && seen.push(data.mirrorTree));
await ask(TREE, { id: tree });
const before = requests;
const { data, error } = await client.mutation(
  `mutation Adopt($node: ID!) {
    nodeAdopt(input: { nodeId: $node }) {
      tree { id version workingEntry { id } } errors { code message path }
    }
  }`,
  { node: answer },
);
if (error) throw error;
const after = requests;
watching.unsubscribe();

console.log(
  JSON.stringify({
    pages: [first, both].map((page) => page.edges.map((edge) => edge.node.id)),
    hasNextPage: both.pageInfo.hasNextPage,
    errors: data.nodeAdopt.errors,
    seen: seen.map((each) => each.workingEntry.id),
    requests: after - before,
    complaints,
  }),
);
