//! The table of places in ARCHITECTURE.md names files and folders that exist, and so do the links of all documents.

use std::fs;

use super::{read, root};

#[test]
fn the_places_of_features_exist() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let table = text.split("## ").find(|it| it.starts_with("Where is"));
    let rows = table.expect("a table of places").lines().skip(1);
    let mut named = 0;
    for row in rows.filter(|line| line.starts_with("| ")) {
        let places = row.rsplit(" | ").next().unwrap_or_default();
        for place in places.split('`').skip(1).step_by(2) {
            assert!(root().join("src").join(place).exists(), "{place}");
            named += 1;
        }
    }
    assert!(named > 50, "ARCHITECTURE.md names {named} places");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let folders = ["", "docs", "docs/decisions"];
    let mut links = 0;
    for folder in folders.map(|folder| root().join(folder)) {
        let entries = fs::read_dir(&folder).expect("a folder");
        let files = entries.map(|entry| entry.expect("an entry").path());
        for file in files.filter(|file| file.extension().is_some_and(|it| it == "md")) {
            let text = read(&file);
            for link in text.split("](").skip(1) {
                let (target, _) = link.split_once(')').unwrap_or_default();
                if !target.starts_with("http") {
                    let from = file.display();
                    assert!(folder.join(target).exists(), "{from} links to {target}");
                    links += 1;
                }
            }
        }
    }
    assert!(links > 10, "{links} links");
}
