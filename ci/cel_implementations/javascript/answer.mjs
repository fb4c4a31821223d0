// Answers selectors with an implementation of CEL in JavaScript, as its users bind a device: integers
// as bigint, versions and quantities as strings. The argument is the package.
import { createInterface } from "node:readline";

const packages = {
  "@bufbuild/cel": async () => {
    const { run } = await import("@bufbuild/cel");
    const { strings } = await import("@bufbuild/cel/ext");
    return (expression, bindings) => run(expression, bindings, { funcs: strings });
  },
  "@marcbachmann/cel-js": async () => (await import("@marcbachmann/cel-js")).evaluate,
  "cel-js": async () => (await import("cel-js")).evaluate,
};

function plain(value) {
  if ("int" in value) return BigInt(value.int);
  return Object.values(value)[0];
}

function byDomain(driver, values) {
  const domains = {};
  for (const [name, value] of Object.entries(values)) {
    const [domain, short] = name.includes("/") ? name.split("/") : [driver, name];
    (domains[domain] ??= {})[short] = plain(value);
  }
  return domains;
}

const evaluate = await packages[process.argv[2]]();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, expression, device } = JSON.parse(line);
  const bound = {
    driver: device.driver,
    attributes: byDomain(device.driver, device.attributes),
    capacity: byDomain(device.driver, device.capacity),
  };
  let answer;
  try {
    const match = evaluate(expression, { device: bound });
    answer = typeof match === "boolean" ? { match } : { error: `no bool: ${match}` };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  console.log(JSON.stringify({ id, ...answer }));
}
