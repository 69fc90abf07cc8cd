// Follows a subscription with graphql-sse in distinct connections mode; prints each result as a line of JSON.
import { createClient } from "graphql-sse";

const { url, query, variables } = JSON.parse(process.argv[2]);
const client = createClient({ url, retryAttempts: 0 });
for await (const result of client.iterate({ query, variables })) console.log(JSON.stringify(result));
client.dispose();
