//! The live page at `/debug/ui`, in a browser: what it draws is what the server knows.

use std::fs;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::devtools::Page;
use crate::support::requests;
use crate::support::server::Server;

const TOKEN: &str = "operators-token";
/// High enough for every row of a table.
const SIZE: [u32; 2] = [1400, 6000];
const PHONE: [u32; 2] = [390, 800];
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The number of lists of everything that a client makes: so many within a minute stand out.
const LISTS: u64 = 12;
const ENTER: u32 = 13;
const ARROW_DOWN: u32 = 40;

/// The figures of all rows of a table of types: type, objects, events of the window, watchers.
const TYPES: &str = "[...document.querySelectorAll('#types .rows .row')].map((row) => {
    const texts = [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent);
    return [texts[0], texts[1], texts[4], texts[7]];
}).sort()";
/// The clients of the table of busiest clients that list all of a type, with the type and their requests.
const LISTERS: &str = "[...document.querySelectorAll('#clients .rows .row')].map((row) => {
    const texts = [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent);
    return [texts[0], texts[4], texts[5]];
}).filter(([, resource]) => resource.startsWith('all ')).sort()";
const STANDS_OUT: &str =
    "[...document.querySelectorAll('.attention li')].map((item) => item.textContent)";
/// The clients and selections of all rows of a table of watchers.
const WATCHERS: &str = "[...document.querySelectorAll('#watchers .rows .row')].map((row) => {
    const texts = [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent);
    return [texts[0], texts[1], texts[2]];
}).sort()";
/// The second line of the tile of events delivered to a watcher.
const DELIVERED: &str = "[...document.querySelectorAll('.tile')].find((tile) => tile.textContent.startsWith('Delivered'))\
    ?.querySelector('.more').textContent ?? ''";
const HEADING: &str = "document.querySelector('h1')?.textContent";

/// A server, and the admin's client of it.
struct Fixture {
    server: Server,
    admin: Client,
    _tokens: TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = folder.path().join("tokens.csv");
        fs::write(&tokens, format!("{TOKEN},operator,1,system:masters\n")).expect("tokens");
        let tokens = tokens.display().to_string();
        let flags = ["--storage-backend=memory", "--token-auth-file", &tokens];
        let (server, admin) = Server::ready(&flags).await;
        Self {
            server,
            admin,
            _tokens: folder,
        }
    }

    async fn page(&self, case: &str, size: [u32; 2]) -> Option<Page> {
        let mut page = Page::open(case, TOKEN, size).await?;
        let port = self.server.port();
        page.go(&format!("https://127.0.0.1:{port}/debug/ui")).await;
        page.until("document.querySelector('#link')?.dataset.link === 'live'")
            .await;
        Some(page)
    }

    async fn get(&self, path: &str) -> Value {
        let text = requests::text(&self.admin, path).await;
        serde_json::from_str(&text).expect("JSON")
    }

    async fn create(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"app": "web"}}});
        let request = requests::request("POST", CONFIG_MAPS, &object);
        self.admin.request_text(request).await.expect("created");
    }

    /// Begins a watch, of which nothing but the head is read.
    async fn watch(&self, agent: &str, query: &str) -> Response<Body> {
        let path = format!("/api/v1/configmaps?watch=true{query}");
        let request = Request::get(path).header("user-agent", agent);
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.admin.send(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer
    }

    /// Waits until an expression on the page is what `told` makes of a document of the server at the same time, and
    /// `holds` for it.
    async fn agree(
        &self,
        page: &mut Page,
        expression: &str,
        path: &str,
        told: impl Fn(&Value) -> Value,
        holds: impl Fn(&Value) -> bool,
    ) {
        let what = format!("the page draws what the server knows at {path}");
        let agreed = eventually(DEADLINE, what, async || {
            let drawn = page.read(expression).await;
            let known = told(&self.get(path).await);
            let agree = drawn == known && holds(&drawn);
            agree.then_some(()).ok_or((drawn, known))
        });
        agreed.await
    }
}

/// Returns the figures of a document's types as the page writes them, sorted.
fn types(state: &Value) -> Value {
    let types = state["types"].as_array().expect("types").iter();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let is_used = |each: &&Value| number(&each["objects"]) + number(&each["watchers"]["total"]) > 0;
    let mut rows: Vec<_> = types
        .filter(is_used)
        .map(|each| {
            let name = each["type"].as_str().expect("a name");
            [
                name.to_owned(),
                count(&each["objects"]),
                count(&each["window"]["events"]),
                count(&each["watchers"]["total"]),
            ]
        })
        .collect();
    rows.sort();
    json!(rows)
}

/// Returns the first word of a client's agent, its type and the number of its requests as the page writes them.
fn lister(client: &Value) -> [String; 3] {
    let text = |name: &str| client[name].as_str().expect("a text").to_owned();
    let agent = text("userAgent");
    let agent = agent.split(' ').next().unwrap_or_default();
    [
        if agent.is_empty() {
            text("user")
        } else {
            agent.to_owned()
        },
        format!("all {}", text("resource")),
        count(&client["requests"]),
    ]
}

/// Returns a number below a million as tables write it.
fn count(number: &Value) -> String {
    match number.as_u64() {
        None => "–".to_owned(),
        Some(0) => "·".to_owned(),
        Some(small @ 1..1000) => small.to_string(),
        Some(large) => format!("{},{:03}", large / 1000, large % 1000),
    }
}

/// Types a name into the filter of types, and waits until its row is the only one.
async fn filter_types(page: &mut Page, name: &str) {
    let filter = "document.querySelector('#types input')";
    let typed =
        format!("{filter}.value = '{name}', {filter}.dispatchEvent(new Event('input')), true");
    page.until(&typed).await;
    let rows = "document.querySelectorAll('#types .rows .row')";
    let is_alone = format!("{rows}.length === 1 && {rows}[0].textContent.startsWith('{name}')");
    page.until(&is_alone).await;
}

#[tokio::test]
async fn the_page_draws_what_the_server_knows() {
    let fixture = Fixture::start().await;
    for name in ["a", "b", "c"] {
        fixture.create(name).await;
    }
    let follower = fixture.watch("follower/2.0 (test)", "").await;
    let reader = fixture
        .watch("reader/1.0", "&labelSelector=app%3Dweb")
        .await;
    let Some(mut page) = fixture.page("the live page", SIZE).await else {
        return;
    };
    let page = &mut page;
    let has_both_watchers = |drawn: &Value| {
        let mut rows = drawn.as_array().expect("rows").iter();
        rows.any(|row| row[0] == "configmaps" && row[3] == "2")
    };
    fixture
        .agree(page, TYPES, "/debug/ui/state", types, has_both_watchers)
        .await;

    // By keyboard alone from the row above to the type's watchers.
    filter_types(page, "cronjobs").await;
    filter_types(page, "configmaps").await;
    page.until("document.querySelector('#types .head button').focus(), true")
        .await;
    page.press("ArrowDown", ARROW_DOWN).await;
    let focused = page.read("document.activeElement.textContent").await;
    assert_eq!(focused, "configmaps");
    let tip = page
        .read("document.getElementById('tip').textContent")
        .await;
    assert!(
        tip.as_str().expect("text").contains("A resource"),
        "what has the focus is told: {tip}"
    );
    page.press("Enter", ENTER).await;
    page.until(&format!("{HEADING} === 'configmaps'")).await;
    page.until("document.querySelectorAll('#watchers .rows .row').length === 2")
        .await;
    let watchers = page.read(WATCHERS).await;
    let user = watchers[0][1].clone();
    let expected = json!([
        ["follower/2.0", user, "everything"],
        ["reader/1.0", user, "app=web"]
    ]);
    assert_eq!(watchers, expected);

    // One watcher's story goes on while it is read.
    let open = "[...document.querySelectorAll('#watchers .rows a')].find((link) => link.textContent === 'reader/1.0').click(), true";
    page.until(open).await;
    page.until(&format!("{HEADING} === 'reader/1.0 watches configmaps'"))
        .await;
    let id = page.read("location.hash.split('/').at(-1)").await;
    let path = format!("/debug/ui/watchers/{}", id.as_str().expect("an id"));
    let before = fixture.get(&path).await["sent"].as_u64().expect("a number");
    fixture.create("d").await;
    let sent = eventually(DEADLINE, "an event is sent", async || {
        fixture.get(&path).await["sent"].as_u64() > Some(before)
    });
    sent.await;
    let told = |watcher: &Value| format!("{} in all", count(&watcher["sent"])).into();
    fixture.agree(page, DELIVERED, &path, told, |_| true).await;
    drop(reader);
    page.until("document.querySelector('.story').textContent.startsWith('This watch has ended')")
        .await;
    drop(follower);
    assert_eq!(page.faults, [] as [Value; 0]);
}

#[tokio::test]
async fn the_page_names_the_client_that_lists_everything() {
    let fixture = Fixture::start().await;
    fixture.create("a").await;
    let case = "the live page's busiest clients";
    let Some(mut page) = fixture.page(case, SIZE).await else {
        return;
    };
    let page = &mut page;
    for _ in 0..LISTS {
        let request = Request::get("/api/v1/configmaps").header("user-agent", "nosy/1.2 (test)");
        let request = request.body(Vec::new()).expect("a request");
        fixture.admin.request_text(request).await.expect("a list");
    }
    // Requests are counted when their answers have been sent, so the last ones perhaps only now.
    let listers = |state: &Value| {
        let clients = state["clients"].as_array().expect("clients").iter();
        let listers = clients.filter(|each| each["everything"] == true);
        let mut rows: Vec<_> = listers.map(lister).collect();
        rows.sort();
        json!(rows)
    };
    let is_listed = |drawn: &Value| {
        let mut rows = drawn.as_array().expect("rows").iter();
        rows.any(|row| row[0] == "nosy/1.2")
    };
    fixture
        .agree(page, LISTERS, "/debug/ui/state", listers, is_listed)
        .await;
    let findings = |state: &Value| {
        let findings = state["findings"].as_array().expect("findings").iter();
        findings.map(|each| each["text"].clone()).collect()
    };
    let is_named = |drawn: &Value| drawn.to_string().contains("nosy/1.2 (user ");
    fixture
        .agree(page, STANDS_OUT, "/debug/ui/state", findings, is_named)
        .await;
    assert_eq!(page.faults, [] as [Value; 0]);
}

#[tokio::test]
async fn the_page_says_that_the_server_is_lost_and_finds_it_again() {
    let mut fixture = Fixture::start().await;
    let Some(mut page) = fixture.page("the live page on a phone", PHONE).await else {
        return;
    };
    let width = "document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(page.read(width).await, true, "the page fits a phone");
    // A busy server may have been silent for a moment.
    page.until("document.getElementById('lost').hidden").await;
    fixture.server.kill();
    page.until("document.querySelector('#link').dataset.link === 'lost'")
        .await;
    let told = "!document.getElementById('lost').hidden && document.getElementById('lost-text').textContent";
    let told = page.until(told).await;
    assert!(told.as_str().expect("text").contains(" old."), "{told}");
    fixture.server.start_again();
    fixture.server.client().await;
    page.until("document.querySelector('#link').dataset.link === 'live' && document.getElementById('lost').hidden")
        .await;
}
