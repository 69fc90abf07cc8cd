// What public tools find in the schema: the reference implementation, two linters, and graphql-inspector; prints each
// finding list as a line of JSON.
import { readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { diff, validate } from "@graphql-inspector/core";
import { ESLint } from "eslint";
import { buildSchema, Source } from "graphql";
import * as reference from "graphql-17";
import linter from "graphql-schema-linter";

const { url, path, documents } = JSON.parse(process.argv[2]);
const sdl = readFileSync(path, "utf8");
const schema = buildSchema(sdl);

function print(step, found) {
  console.log(JSON.stringify({ step, found }));
}

async function introspected() {
  const query = reference.getIntrospectionQuery({
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  });
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return reference.printSchema(reference.buildClientSchema(data));
}

const built = reference.buildSchema(sdl);
print("reference", reference.validateSchema(built).map(String));
// Byte for byte, so that a front end may take either.
print("reference printer", reference.printSchema(built) === sdl.trimEnd());

// The reference implementation adds a few directives of its own.
const served = await introspected();
print("served", reference.printSchema(reference.buildSchema(served)) === reference.printSchema(built));
print("diff with served", (await diff(schema, buildSchema(served))).map((change) => change.message));
print("diff with itself", (await diff(schema, buildSchema(sdl))).map((change) => change.message));

const sources = Object.entries(documents).map(([name, text]) => new Source(text, name));
print("documents", validate(schema, sources).map(({ source, errors, deprecated }) => [source.name, [...errors, ...deprecated].map(String)]));

const root = fileURLToPath(new URL("../..", import.meta.url));
const overrideConfigFile = fileURLToPath(new URL("eslint.config.mjs", import.meta.url));
const [linted] = await new ESLint({ cwd: root, overrideConfigFile }).lintFiles([path]);
print("graphql-eslint", linted.messages.map(({ line, ruleId, message }) => `${line}: ${ruleId}: ${message}`));

let said = "";
const output = new Writable({
  write(chunk, _encoding, done) {
    said += chunk;
    done();
  },
});
await linter.runner.run(output, process.stdin, output, ["node", "graphql-schema-linter", "--format", "json", path]);
print("graphql-schema-linter", JSON.parse(said).errors);
