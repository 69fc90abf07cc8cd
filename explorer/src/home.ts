// The start page: one real query, so that a visitor sees at once whether the server answers and as whom.

const QUERY = `{
  viewer { user { name } }
  characters(first: 10) { nodes { id name } totalCount }
}`;

interface Home {
  viewer: { user: { name: string } | null } | null;
  characters: { nodes: { id: string; name: string }[]; totalCount: number } | null;
}

interface Answer {
  data?: Home | null;
  errors?: { message: string; extensions?: { code?: string } }[];
}

function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element #${id}`);
  return found as T;
}

const status = element("status");
const signIn = element<HTMLFormElement>("sign-in");
const tokenField = element<HTMLInputElement>("token");

async function ask(token: string): Promise<void> {
  show("Asking the server…");
  let response: Response;
  try {
    response = await fetch("/graphql", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/graphql-response+json, application/json;q=0.9",
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query: QUERY }),
    });
  } catch {
    return show("The server cannot be reached. Is it still running?");
  }
  const answer: Answer | null = await response.json().catch(() => null);
  const error = answer?.errors?.[0];
  if (response.status === 401 || error?.extensions?.code === "UNAUTHENTICATED") {
    signIn.hidden = false;
    return show(
      token
        ? "The server does not accept this token. It may be mistyped, expired or revoked."
        : "This server asks for an access token before it answers. Paste yours to see your characters.",
    );
  }
  if (!answer?.data) {
    return show(error?.message ?? `The server answered with status ${response.status} and no result.`);
  }
  signIn.hidden = true;
  show(error ? `A part of the answer is missing: ${error.message}` : "", answer.data);
}

function show(message: string, home?: Home): void {
  status.textContent = message;
  element("answer").hidden = !home;
  if (!home) return;
  element("viewer").textContent = home.viewer?.user?.name ?? "nobody (anonymous)";
  const { nodes, totalCount } = home.characters ?? { nodes: [], totalCount: 0 };
  element("total").textContent =
    totalCount === 0
      ? "None that you can see yet."
      : totalCount > nodes.length
        ? `The first ${nodes.length} of ${totalCount}`
        : `${totalCount} in all`;
  element("characters").replaceChildren(
    ...nodes.map(({ id, name }) => {
      const item = document.createElement("li");
      const code = document.createElement("code");
      code.textContent = id;
      item.append(name, code);
      return item;
    }),
  );
}

signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  void ask(tokenField.value.trim());
});
element<HTMLAnchorElement>("open-query").search = new URLSearchParams({ query: QUERY }).toString();
void ask("");
