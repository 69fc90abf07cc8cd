// Serves the reference implementation of graphql-transport-ws, with a schema like the one of
// tests/schema/wire/serving.py, on a port of the system's; prints the port as a line of JSON.
// Ends when its input does.
import { buildSchema } from "graphql";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const schema = buildSchema(`
  input NumberInput { number: Int! }
  type Query {
    hello(name: String): String!
    twice(input: NumberInput!): Int!
    slow(seconds: Float): String!
    broken: String
    refused: String
  }
  type Mutation { set(value: Int!): Int! }
  type Subscription {
    count(to: Int!): Int!
    silent: Int!
    breaking(after: Int!): Int!
    refusing(after: Int!): Int!
  }
`);

async function* numbers(from, to, failure) {
  for (let number = from; number < to; number += 1) yield number;
  if (failure) throw failure;
}

const resolvers = {
  hello: (_, { name }) => `hello ${name ?? "world"}`,
  twice: (_, { input }) => input.number * 2,
  slow: () => new Promise(() => {}),
  broken: () => {
    throw new Error("broken");
  },
  refused: () => {
    throw new Error("Mend this.");
  },
  set: (_, { value }) => value,
};
const sources = {
  count: (_, { to }) => numbers(1, to + 1),
  silent: async function* () {
    await new Promise(() => {});
    yield 0;
  },
  breaking: (_, { after }) => numbers(0, after, new Error("broken")),
  refusing: (_, { after }) => numbers(0, after, new Error("Mend this.")),
};
for (const type of [schema.getQueryType(), schema.getMutationType()]) {
  for (const field of Object.values(type.getFields())) field.resolve = resolvers[field.name];
}
for (const field of Object.values(schema.getSubscriptionType().getFields())) {
  field.subscribe = sources[field.name];
  field.resolve = (event) => event;
}

// What the reference has to say of a client's mistakes goes to the client as well.
console.error = console.warn = () => {};
const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
useServer({ schema }, server);
server.on("listening", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.resume().on("end", () => process.exit(0));
