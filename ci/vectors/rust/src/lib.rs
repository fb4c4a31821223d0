//! Holds an allocator to what Kubernetes' own answers.

use serde_json::Value;

/// The allocator under test: the devices of each claim, as driver/pool/device; None: no fit.
pub fn allocate(_question: &Value, _node: &str) -> Option<Vec<Vec<String>>> {
    Some(Vec::new())
}

#[test]
fn vectors() {
    let minor = std::env::var("KUBERNETES").expect("KUBERNETES");
    let file = std::env::var("VECTORS").expect("VECTORS");
    let text = std::fs::read_to_string(file).expect("the file of vectors");
    let mut wrong = Vec::new();
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).expect("a line of JSON");
        let minors = vector["kubernetes"].as_array().expect("minors");
        if !minors.iter().any(|known| known == minor.as_str()) {
            continue;
        }
        for (node, expected) in vector["expected"].as_object().expect("nodes") {
            let (id, sentence) = (&vector["id"], &vector["sentence"]);
            let mut devices = allocate(&vector["question"], node);
            let fits = devices.is_some();
            if Some(fits) != expected.as_bool() {
                wrong.push(format!("{id}: fits {node}: {fits}: {sentence}"));
            }
            devices.iter_mut().flatten().for_each(|claim| claim.sort());
            // There where no others are right.
            let only = vector["devices"].get(node);
            if fits && only.is_some_and(|only| *only != serde_json::json!(devices)) {
                wrong.push(format!("{id}: devices on {node}: {devices:?}: {sentence}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
