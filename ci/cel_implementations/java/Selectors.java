// Answers selectors with dev.cel:cel, as its users bind a device: integers as long, versions and
// quantities as strings.

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import dev.cel.bundle.Cel;
import dev.cel.bundle.CelFactory;
import dev.cel.common.types.SimpleType;
import dev.cel.extensions.CelExtensions;
import dev.cel.parser.CelStandardMacro;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

public class Selectors {
  private static final Cel CEL =
      CelFactory.standardCelBuilder()
          .setStandardMacros(CelStandardMacro.STANDARD_MACROS)
          .addVar("device", SimpleType.DYN)
          .addCompilerLibraries(CelExtensions.optional(), CelExtensions.strings())
          .addRuntimeLibraries(CelExtensions.optional(), CelExtensions.strings())
          .build();

  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line; (line = input.readLine()) != null; ) {
      output.println(answer(JsonParser.parseString(line).getAsJsonObject()));
    }
  }

  private static JsonObject answer(JsonObject question) {
    var said = new JsonObject();
    said.add("id", question.get("id"));
    try {
      var ast = CEL.compile(question.get("expression").getAsString()).getAst();
      var device = bind(question.getAsJsonObject("device"));
      var match = CEL.createProgram(ast).eval(Map.of("device", device));
      if (match instanceof Boolean matched) {
        said.addProperty("match", matched);
      } else {
        said.addProperty("error", "no bool: " + match);
      }
    } catch (Exception error) { // whatever it throws is its answer
      said.addProperty("error", String.valueOf(error.getMessage()));
    }
    return said;
  }

  private static Map<String, Object> bind(JsonObject device) {
    var driver = device.get("driver").getAsString();
    return Map.of(
        "driver", driver,
        "attributes", byDomain(driver, device.getAsJsonObject("attributes")),
        "capacity", byDomain(driver, device.getAsJsonObject("capacity")));
  }

  private static Map<String, Map<String, Object>> byDomain(String driver, JsonObject values) {
    var domains = new HashMap<String, Map<String, Object>>();
    for (var entry : values.entrySet()) {
      var slash = entry.getKey().indexOf('/');
      var domain = slash < 0 ? driver : entry.getKey().substring(0, slash);
      var value = entry.getValue().getAsJsonObject().entrySet().iterator().next().getValue();
      domains
          .computeIfAbsent(domain, name -> new HashMap<>())
          .put(entry.getKey().substring(slash + 1), plain(value));
    }
    return domains;
  }

  private static Object plain(JsonElement value) {
    JsonPrimitive primitive = value.getAsJsonPrimitive();
    if (primitive.isBoolean()) {
      return primitive.getAsBoolean();
    }
    return primitive.isNumber() ? (Object) primitive.getAsLong() : primitive.getAsString();
  }
}
