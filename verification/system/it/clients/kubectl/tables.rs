//! The tables that kubectl prints: the columns of every kind, and rows as they change.

use super::*;

/// One object of each kind.
const OBJECTS: &str = include_str!("objects.yaml");

/// Commands, each with the lines that it prints; white space and ages are made alike.
const PRINTED: &str = include_str!("printed.txt");

#[tokio::test]
async fn kubectl_prints_the_usual_columns() {
    let (server, _) = Server::ready(&[]).await;
    let kubectls = kubectls("what kubectl prints", &server);
    for (place, kubectl) in kubectls.iter().enumerate() {
        fs::create_dir_all(&kubectl.folder).expect("a folder");
        if place == 0 {
            let objects = kubectl.file("objects.yaml", OBJECTS);
            kubectl.ok(&["create", "-f", &objects]);
        }
        kubectl.prints_every_kind();
        kubectl.prints_as_asked();
        kubectl.prints_rows_as_they_change();
    }
}

impl Kubectl {
    fn prints_every_kind(&self) {
        let mut kinds = 0;
        for expected in PRINTED.split("\n\n") {
            let (command, lines) = expected.split_once('\n').expect("a command and its lines");
            let words: Vec<&str> = command.split(' ').collect();
            let found = alike(&self.ok(&words));
            assert_eq!(found.trim_end(), lines.trim_end(), "{command}");
            kinds += 1;
        }
        assert!(kinds > 70, "{kinds}");
    }

    fn prints_as_asked(&self) {
        let prints = |command: &str| alike(&self.ok(&command.split(' ').collect::<Vec<_>>()));
        let all = prints("get all");
        for row in [
            "pod/shown 0/1 Pending 0 <age>\n",
            "service/shown ClusterIP 10.0.0.77 <none> 80/TCP <age>\n",
            "deployment.apps/shown 0/2 0 0 <age>\n",
            "horizontalpodautoscaler.autoscaling/shown Deployment/shown cpu: <unknown>/80% 1 4 0 <age>\n",
        ] {
            assert!(all.contains(row), "{all}");
        }
        assert_eq!(
            prints("get pods -A"),
            "NAMESPACE NAME READY STATUS RESTARTS AGE\ndefault shown 0/1 Pending 0 <age>\n"
        );
        assert_eq!(
            prints("get pods --show-labels --no-headers"),
            "shown 0/1 Pending 0 <age> app=shown,tier=front\n"
        );
        assert_eq!(
            prints("get pods -L tier"),
            "NAME READY STATUS RESTARTS AGE TIER\nshown 0/1 Pending 0 <age> front\n"
        );
        let namespaces = prints("get namespaces --sort-by=.metadata.name --no-headers");
        let names: Vec<_> = namespaces
            .lines()
            .map(|line| line.split(' ').next())
            .collect();
        assert!(names.is_sorted() && names.len() > 4, "{namespaces}");
        assert_eq!(
            prints("get pods -o custom-columns=POD:.metadata.name,IMAGE:.spec.containers[0].image"),
            "POD IMAGE\nshown nginx\n"
        );
        assert_eq!(
            prints("get pods,configmaps shown --no-headers"),
            "pod/shown 0/1 Pending 0 <age>\nconfigmap/shown 2 <age>\n"
        );
        let scale = prints("get deployments shown --subresource=scale");
        assert_eq!(scale, "NAME DESIRED AVAILABLE AGE\nshown 2 0 <age>\n");
        assert_eq!(prints("get pods -l app=nowhere"), "");
    }

    fn prints_rows_as_they_change(&self) {
        self.ok(&["run", "watched", "--image=nginx", "--labels=watched=yes"]);
        let mut watching = self
            .command(&[
                "get",
                "pods",
                "-l",
                "watched=yes",
                "-w",
                "--output-watch-events",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl");
        let lines = BufReader::new(watching.stdout.take().expect("its output"));
        let mut lines = lines.lines().map(|line| alike(&line.expect("a line")));
        let mut next = || lines.next().unwrap_or_default();
        assert_eq!(next(), "EVENT NAME READY STATUS RESTARTS AGE\n");
        assert_eq!(next(), "ADDED watched 0/1 Pending 0 <age>\n");
        let crash =
            r#"{"state":{"waiting":{"reason":"CrashLoopBackOff"}},"restartCount":2,"ready":false"#;
        let runs = r#"{"state":{"running":{}},"restartCount":2,"ready":true"#;
        for (container, row) in [(crash, "0/1 CrashLoopBackOff 2"), (runs, "1/1 Running 2")] {
            let patch = format!(
                r#"{{"status":{{"phase":"Running","containerStatuses":
                    [{container},"name":"watched","image":"nginx","imageID":""}}]}}}}"#
            );
            let status = [
                "patch",
                "pod",
                "watched",
                "--subresource=status",
                "--type=merge",
            ];
            self.ok(&[&status[..], &["-p", &patch]].concat());
            assert_eq!(next(), format!("MODIFIED watched {row} <age>\n"));
        }
        self.ok(&["label", "pod", "watched", "watched=no", "--overwrite"]);
        assert_eq!(next(), "DELETED watched 1/1 Running 2 <age>\n");
        self.ok(&["label", "pod", "watched", "watched=yes", "--overwrite"]);
        assert_eq!(next(), "ADDED watched 1/1 Running 2 <age>\n");
        self.ok(&["delete", "pod", "watched", "--now"]);
        // A pod on no node is marked first, and goes at once.
        assert_eq!(next(), "MODIFIED watched 1/1 Terminating 2 <age>\n");
        assert_eq!(next(), "DELETED watched 1/1 Terminating 2 <age>\n");
        watching.kill().expect("a running kubectl");
        watching.wait().expect("a killed kubectl");
    }
}

/// Returns the output with one space between words, and with placeholders for values that vary.
fn alike(printed: &str) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| match word {
            _ if is_age(word) => "<age>".to_owned(),
            _ if is_time(word) => "<time>".to_owned(),
            _ => match word.split_once("controller-uid=") {
                Some((before, _)) => format!("{before}controller-uid=<uid>"),
                None => word.to_owned(),
            },
        });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    printed.lines().map(line).collect()
}

/// Such as `5s` or `2m3s`.
fn is_age(word: &str) -> bool {
    let units = word.ends_with('s') || word.ends_with('m');
    units
        && word.starts_with(|letter: char| letter.is_ascii_digit())
        && word
            .chars()
            .all(|letter| letter.is_ascii_digit() || matches!(letter, 's' | 'm'))
}

/// Such as `2026-11-22T12:00:00Z`.
fn is_time(word: &str) -> bool {
    word.len() == 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T'
}
