// A query and a mutation by urql over HTTP, then a subscription through graphql-ws; prints each result as a
// line of JSON. With preferGetMethod urql sends the query by GET.
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const { url, socketUrl, query, mutation, subscription, preferGetMethod, headers } = JSON.parse(process.argv[2]);
const sockets = createClient({ url: socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
const client = new Client({
  url,
  preferGetMethod: preferGetMethod ?? false,
  fetchOptions: { headers: headers ?? {} },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ query: query ?? "", variables }, sink) }),
      }),
    }),
  ],
});

function print({ data, error }) {
  console.log(JSON.stringify(error ? { error: String(error) } : { data }));
}

if (query) print(await client.query(query.text, query.variables));
if (mutation) print(await client.mutation(mutation.text, mutation.variables));
if (subscription) {
  await new Promise((resolve) => {
    client.subscription(subscription.text, subscription.variables).subscribe((result) => {
      // When the stream completes, urql shows the last result once more, marked as the last.
      if (result.hasNext) print(result);
      else resolve();
    });
  });
}
await sockets.dispose();
