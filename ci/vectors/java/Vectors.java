import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Holds an allocator to what Kubernetes' own answers. */
public class Vectors {
  /** The allocator under test: the devices of each claim, as driver/pool/device; null: no fit. */
  static List<List<String>> allocate(Map<String, Object> question, String node) {
    return List.of();
  }

  public static void main(String[] arguments) throws Exception {
    int wrong = 0;
    for (String line : Files.readAllLines(Path.of(System.getenv("VECTORS")))) {
      Map<String, Object> vector = object(new Json(line).value());
      if (!((List<?>) vector.get("kubernetes")).contains(System.getenv("KUBERNETES"))) {
        continue;
      }
      for (Map.Entry<String, Object> entry : object(vector.get("expected")).entrySet()) {
        String node = entry.getKey();
        List<List<String>> devices = allocate(object(vector.get("question")), node);
        boolean fits = devices != null;
        // There where no others are right.
        Object only = object(vector.getOrDefault("devices", Map.of())).get(node);
        if (!entry.getValue().equals(fits)) {
          wrong++;
          System.out.printf("%s: fits %s: %s: %s%n", vector.get("id"), node, fits, vector.get("sentence"));
        } else if (fits && only != null && !only.equals(devices.stream().map(claim -> claim.stream().sorted().toList()).toList())) {
          wrong++;
          System.out.printf("%s: devices on %s: %s: %s%n", vector.get("id"), node, devices, vector.get("sentence"));
        }
      }
    }
    System.exit(wrong == 0 ? 0 : 1);
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> object(Object value) {
    return (Map<String, Object>) value;
  }

  /** Reads a line of JSON without a library; a project has its own reader already. */
  static class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    Object value() {
      switch (text.charAt(at)) {
        case '{':
          Map<String, Object> object = new LinkedHashMap<>();
          for (at++; text.charAt(at) != '}'; skip(',')) {
            String key = string();
            skip(':');
            object.put(key, value());
          }
          at++;
          return object;
        case '[':
          List<Object> list = new ArrayList<>();
          for (at++; text.charAt(at) != ']'; skip(',')) {
            list.add(value());
          }
          at++;
          return list;
        case '"':
          return string();
        default:
          int start = at;
          while (",]}".indexOf(text.charAt(at)) < 0) {
            at++;
          }
          String word = text.substring(start, at);
          return word.equals("true") || word.equals("false") ? Boolean.valueOf(word) : (Object) word;
      }
    }

    private void skip(char sign) {
      if (text.charAt(at) == sign) {
        at++;
      }
    }

    private String string() {
      StringBuilder found = new StringBuilder();
      for (at++; text.charAt(at) != '"'; at++) {
        char sign = text.charAt(at);
        if (sign == '\\') {
          sign = text.charAt(++at);
          if (sign == 'u') {
            sign = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
            at += 4;
          } else {
            int index = "nrtbf".indexOf(sign);
            sign = index < 0 ? sign : "\n\r\t\b\f".charAt(index);
          }
        }
        found.append(sign);
      }
      at++;
      return found.toString();
    }
  }
}
