// Runs the audits of graphql-http against a server; prints each as a line of JSON.
import { serverAudits } from "graphql-http";

const { url } = JSON.parse(process.argv[2]);

// GET requests need a header that a plain link cannot send; the suite knows nothing of it.
function fetchFn(input, init = {}) {
  const headers = { ...init.headers };
  if ((init.method ?? "GET") === "GET") headers["graphql-preflight"] = "1";
  return fetch(input, { ...init, headers });
}

for (const audit of serverAudits({ url, fetchFn })) {
  const { status, reason, response } = await audit.fn();
  const answer = response && { status: response.status, type: response.headers.get("content-type") };
  console.log(JSON.stringify({ id: audit.id, name: audit.name, status, reason, answer }));
}
