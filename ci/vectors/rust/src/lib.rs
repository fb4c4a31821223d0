//! Holds an allocator to what Kubernetes' own answers.

use serde_json::Value;

/// The allocator under test: whether the question's claims fit a node.
pub fn fits(_question: &Value, _node: &str) -> bool {
    true
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
            let got = fits(&vector["question"], node);
            if Some(got) != expected.as_bool() {
                wrong.push(format!("{}: fits {node}: {got}: {}", vector["id"], vector["sentence"]));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
