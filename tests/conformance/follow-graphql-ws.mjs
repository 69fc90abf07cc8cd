// Follows a subscription with graphql-ws; prints each result as a line of JSON.
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const { socketUrl, query, variables, connectionParams } = JSON.parse(process.argv[2]);
const client = createClient({ url: socketUrl, webSocketImpl: WebSocket, connectionParams, retryAttempts: 0 });
for await (const result of client.iterate({ query, variables })) console.log(JSON.stringify(result));
await client.dispose();
