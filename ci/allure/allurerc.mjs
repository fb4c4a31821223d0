// Allure 3's configuration for ci/allure/build, which sets the three places. Categories are those that
// the run wrote: Allure 3 does not take them from the results by itself.
import { existsSync, readFileSync } from "node:fs";

const { ALLURE_RESULTS, ALLURE_REPORT, ALLURE_HISTORY } = process.env;
const categories = `${ALLURE_RESULTS}/categories.json`;

export default {
  name: "DRA conformance",
  output: ALLURE_REPORT,
  historyPath: ALLURE_HISTORY,
  appendHistory: true,
  categories: existsSync(categories) ? JSON.parse(readFileSync(categories, "utf8")) : undefined,
  plugins: { awesome: { options: { reportName: "DRA conformance", singleFile: true } } },
};
