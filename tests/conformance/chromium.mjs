// Chromium without a window, the network left alone but for what a page asks of us.
import { chromium } from "playwright-core";

export function launch(executablePath, ...args) {
  return chromium.launch({
    executablePath,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...args,
    ],
  });
}
