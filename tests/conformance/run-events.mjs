// A run's events by the browser's EventSource, from a page of the server's own: prints each event, and each error with
// what the source does next, as a line of JSON. Ends when the source has given up.
import { launch } from "./chromium.mjs";

const { address, executablePath, run } = JSON.parse(process.argv[2]);

// In the page.
function listen([run, types]) {
  return new Promise((resolve) => {
    const source = new EventSource(`/runs/${run}/events`);
    for (const type of types) {
      source.addEventListener(type, (event) => print({ type, id: event.lastEventId, data: JSON.parse(event.data) }));
    }
    source.onerror = () => {
      const isOver = source.readyState === EventSource.CLOSED;
      print({ error: isOver ? "over" : "comes back" });
      if (isOver) resolve();
    };
  });
}

const types = ["StreamOpened", "RunStarted", "PhaseStarted", "TextDelta", "PhaseFinished", "RunWarning", "RunProgressed", "RunFinished"];
const browser = await launch(executablePath);
try {
  const page = await browser.newPage();
  await page.exposeFunction("print", (line) => console.log(JSON.stringify(line)));
  await page.goto(address);
  await page.evaluate(listen, [run, [...types, "Interrupted", "message"]]);
} finally {
  await browser.close();
}
