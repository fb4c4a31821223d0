// Holds an allocator to what Kubernetes' own answers.
const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { test } = require("node:test");

/** The allocator under test: the devices of each claim, as driver/pool/device; null: no fit. */
function allocate(question, node) {
  return [];
}

for (const line of readFileSync(process.env.VECTORS, "utf8").split("\n").filter(Boolean)) {
  const vector = JSON.parse(line);
  if (!vector.kubernetes.includes(process.env.KUBERNETES)) continue;
  test(vector.id, () => {
    for (const [node, expected] of Object.entries(vector.expected)) {
      const devices = allocate(vector.question, node);
      const fits = devices !== null;
      assert.equal(fits, expected, `${vector.id}: fits ${node}: ${fits}: ${vector.sentence}`);
      const only = vector.devices?.[node]; // there where no others are right
      if (fits && only !== undefined) {
        const sorted = devices.map((claim) => claim.toSorted());
        assert.deepEqual(sorted, only, `${vector.id}: devices on ${node}: ${vector.sentence}`);
      }
    }
  });
}
