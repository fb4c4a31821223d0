//! Answers selectors with the crate cel, as its users bind a device: versions and quantities as
//! strings.

use cel::{Context, Program, Value};
use serde_json::{json, Map, Value as Json};
use std::io::{self, BufRead, Write};

fn by_domain(driver: &str, values: &Map<String, Json>) -> Json {
    let mut domains = Map::new();
    for (name, value) in values {
        let (domain, short) = name.split_once('/').unwrap_or((driver, name));
        let plain = value.as_object().and_then(|kinds| kinds.values().next()).cloned();
        domains
            .entry(domain)
            .or_insert_with(|| json!({}))[short] = plain.unwrap_or(Json::Null);
    }
    Json::Object(domains)
}

fn answer(question: &Json) -> Result<bool, String> {
    let device = &question["device"];
    let driver = device["driver"].as_str().unwrap_or_default();
    let part = |name: &str| by_domain(driver, device[name].as_object().unwrap_or(&Map::new()));
    let bound = json!({
        "driver": driver,
        "attributes": part("attributes"),
        "capacity": part("capacity"),
    });
    let expression = question["expression"].as_str().unwrap_or_default();
    let program = Program::compile(expression).map_err(|error| error.to_string())?;
    let mut context = Context::default();
    context.add_variable("device", bound).map_err(|error| error.to_string())?;
    match program.execute(&context) {
        Ok(Value::Bool(matched)) => Ok(matched),
        Ok(other) => Err(format!("no bool: {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let question: Json = serde_json::from_str(&line?)?;
        let said = match answer(&question) {
            Ok(matched) => json!({"id": question["id"], "match": matched}),
            Err(error) => json!({"id": question["id"], "error": error}),
        };
        writeln!(output, "{said}")?;
        output.flush()?;
    }
    Ok(())
}
