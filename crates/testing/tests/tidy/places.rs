//! The table of places in ARCHITECTURE.md names one file or folder a row, which exists, and so do the files that
//! requests pass and the targets of links.

use super::{files, package_folders, read, root};

#[test]
fn the_places_of_features_exist() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let table = text.split("## ").find(|it| it.starts_with("Where is"));
    let rows = table.expect("a table of places").lines().skip(1);
    let rows = rows.filter(|line| line.starts_with("| ")).skip(1);
    let mut named = 0;
    for row in rows {
        let place = row.rsplit(" | ").next().unwrap_or_default();
        let place = place.trim_matches(['`', ' ', '|']);
        assert!(!place.contains('`'), "more than one place: {row}");
        assert!(root().join(place).exists(), "{place}");
        named += 1;
    }
    assert!(named > 100, "ARCHITECTURE.md names {named} places");
}

#[test]
fn the_files_that_requests_pass_exist() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let section = text
        .split("## ")
        .find(|it| it.starts_with("Three requests"));
    let rows = section
        .expect("a section")
        .lines()
        .filter(|line| line.starts_with("| "));
    let quoted: Vec<&str> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .collect();
    for name in &quoted {
        let place = match name.split_once('/').expect(name) {
            ("storage", _) => format!("src/{name}"),
            (package, file) => format!("crates/{package}/src/{file}"),
        };
        assert!(root().join(&place).exists(), "{place}");
    }
    assert!(quoted.len() > 20, "{quoted:?}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents = [
        "README",
        "ARCHITECTURE",
        "CONTRIBUTING",
        "CHANGELOG",
        "PERF",
    ];
    let documents = documents.map(|name| root().join(name).with_extension("md"));
    let packages = package_folders().into_iter().filter(|it| it != root());
    let folders = packages.chain([root().join("docs")]);
    let others = folders.flat_map(|folder| files(&folder, "md"));
    let mut links = 0;
    for file in documents.into_iter().chain(others) {
        let text = read(&file);
        let folder = file.parent().expect("a folder");
        for link in text.split("](").skip(1) {
            let (target, _) = link.split_once(')').unwrap_or_default();
            if !target.starts_with("http") {
                let from = file.display();
                assert!(folder.join(target).exists(), "{from} links to {target}");
                links += 1;
            }
        }
    }
    assert!(links > 10, "{links} links");
}
