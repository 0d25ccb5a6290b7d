//! The published figures beside the models, through the binary.

mod common;

use common::Lab;

#[test]
fn every_study_prints_claims_with_verdicts() {
    let lab = Lab::new();
    let all = lab.ok("reproduce");
    assert!(all.contains("gorman-2002") && all.contains("claims:"), "{all}");
    let one = lab.ok("reproduce gorman-2002 --html studies.html");
    assert!(one.contains("Parameters") && one.contains("assumed:"), "{one}");
    let page = std::fs::read_to_string(lab.path("studies.html")).unwrap();
    assert!(page.contains("2.4.19-rmap14a") && page.matches("class=\"plot\"").count() >= 4);
    let error = lab.fails("reproduce nobody-1999", 2);
    assert!(error.contains("gorman-2002"), "{error}");
}

/// The models are seeded and in virtual time: what they say never changes unless they do.
#[test]
fn the_claims_are_what_they_were() {
    let lab = Lab::new();
    let studies = lab.json("reproduce --json");
    let mut lines = String::new();
    for study in studies["studies"].as_array().unwrap() {
        for claim in study["claims"].as_array().unwrap() {
            lines += &format!(
                "{}: {}: {}\n",
                study["name"].as_str().unwrap(),
                claim["what"].as_str().unwrap(),
                claim["verdict"].as_str().unwrap()
            );
        }
    }
    insta::assert_snapshot!("claims", lines);
}
