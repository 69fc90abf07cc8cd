// Opens the web pages in headless Chromium as a visitor would; prints what was seen as one line of JSON.
import { launch } from "./chromium.mjs";

const { address, executablePath, run, subscription } = JSON.parse(process.argv[2]);
const browser = await launch(executablePath);
const context = await browser.newContext();
const page = await context.newPage();
const complaints = [];
const outside = [];
page.on("console", (message) => {
  if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
});
page.on("pageerror", (error) => complaints.push(String(error)));
function note(url) {
  if (!url.startsWith(`${address}/`) && !/^(data|blob):/.test(url)) outside.push(url);
}
context.on("request", (request) => note(request.url()));
page.on("websocket", (socket) => note(socket.url().replace(/^ws/, "http")));

async function ask(query, variables) {
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables ?? {}) });
  await page.goto(`${address}/graphiql?${parameters}`);
  // The editor is loaded after the page; before that the button does nothing.
  await page.locator(".graphiql-query-editor .view-lines").getByText("{").first().waitFor();
  await page.locator(".graphiql-execute-button").click();
  return page.locator(".result-window .view-lines");
}

try {
  await page.goto(`${address}/`);
  await page.locator("#characters li").first().waitFor();
  const home = {
    title: await page.title(),
    viewer: await page.locator("#viewer").textContent(),
    characters: await page.locator("#characters li").allTextContents(),
    total: await page.locator("#total").textContent(),
  };

  const answer = await ask("{ viewer { user { name } } }");
  await answer.getByText('"local"').waitFor();
  const query = await answer.textContent();

  const events = await ask(subscription, { run });
  await events.getByText("RunFinished").waitFor();
  const last = await events.textContent();

  console.log(JSON.stringify({ home, query, last, complaints, outside }));
} catch (error) {
  const answer = await page.locator(".result-window").textContent().catch(() => "");
  console.error(String(error), JSON.stringify({ complaints, outside, answer }));
  process.exitCode = 1;
} finally {
  await browser.close();
}
