// Holds an allocator to what Kubernetes' own answers.
const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { test } = require("node:test");

/** The allocator under test: whether the question's claims fit a node. */
function fits(question, node) {
  return true;
}

for (const line of readFileSync(process.env.VECTORS, "utf8").split("\n").filter(Boolean)) {
  const vector = JSON.parse(line);
  if (!vector.kubernetes.includes(process.env.KUBERNETES)) continue;
  test(vector.id, () => {
    for (const [node, expected] of Object.entries(vector.expected)) {
      const got = fits(vector.question, node);
      assert.equal(got, expected, `${vector.id}: fits ${node}: ${got}: ${vector.sentence}`);
    }
  });
}
