import { defineConfig } from "vite";

export default defineConfig({
  build: {
    // `/assets/{id}` is the server's route for stored files.
    assetsDir: "assets-web",
    // Files instead of data URLs, so that a policy of `img-src 'self'` can hold on the start page.
    assetsInlineLimit: 0,
    // The editor is one large part by nature; a warning on every build would hide the others.
    chunkSizeWarningLimit: 5000,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: ["index.html", "graphiql.html"],
      // Hundreds of GraphiQL's modules say "use client", which means nothing outside a React server.
      checks: { moduleLevelDirective: false },
    },
  },
});
