// Many subscriptions over one graphql-ws client that never gives up; prints each result and each refused connection as
// a line of JSON. It ends when it is told so by the last result.
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const { socketUrl, query, count, results } = JSON.parse(process.argv[2]);
const client = createClient({
  url: socketUrl,
  webSocketImpl: WebSocket,
  retryAttempts: Infinity,
  shouldRetry: () => true,
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 20)),
  on: { error: () => console.log(JSON.stringify({ refused: true })) },
});

let left = count * results;
for (let index = 0; index < count; index += 1) {
  client.subscribe(
    { query },
    {
      next: (result) => {
        console.log(JSON.stringify({ index, result }));
        left -= 1;
        if (left === 0) void client.dispose();
      },
      error: (error) => {
        throw error;
      },
      complete: () => {},
    },
  );
}
