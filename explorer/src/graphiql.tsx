// GraphiQL for this server, from our own build: nothing is asked of any other origin.
import "graphiql/setup-workers/vite";
import "graphiql/style.css";
import "./graphiql.css";

import { createGraphiQLFetcher } from "@graphiql/toolkit";
import { GraphiQL } from "graphiql";
import { createRoot } from "react-dom/client";

const START = `# Ctrl+Enter runs the query. To sign in, put
# {"Authorization": "Bearer your-token"}
# into the Headers tab below.

query Start {
  viewer {
    user {
      name
    }
  }
  characters(first: 10) {
    totalCount
    nodes {
      id
      name
    }
  }
}
`;

const parameters = new URLSearchParams(location.search);
const query = parameters.get("query") ?? undefined;
// A link with a query and no variables must not get the variables that this browser remembers.
const variables = parameters.get("variables") ?? (query === undefined ? undefined : "");

const socket = new URL("/graphql", location.href);
socket.protocol = socket.protocol === "https:" ? "wss:" : "ws:";

const fetcher = createGraphiQLFetcher({
  url: "/graphql",
  // By address, not by a ready client: so each subscription gets a graphql-ws client of its own, whose
  // connection_init carries the header editor's present values. A browser cannot set headers on a socket.
  subscriptionUrl: socket.href,
});

const root = document.getElementById("root");
if (!root) throw new Error("The page has no element #root");

createRoot(root).render(
  <GraphiQL
    fetcher={fetcher}
    defaultQuery={START}
    initialQuery={query}
    initialVariables={variables}
    isHeadersEditorEnabled
    inputValueDeprecation
    schemaDescription
  >
    <GraphiQL.Logo>
      <a href="/">Mirrorgraph</a>
    </GraphiQL.Logo>
  </GraphiQL>,
);
