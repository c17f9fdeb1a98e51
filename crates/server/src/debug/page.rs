//! The page of `/debug/ui` and its files, compiled in. It loads nothing from elsewhere, and its content security policy
//! lets the browser run nothing but these scripts.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use ringwatch_http::{ResponseBody, full};
use sha2::{Digest, Sha256};

/// The path of the page. Its files lie below it.
pub(super) const PAGE: &str = "/debug/ui";

/// Scripts, styles, requests and the icon are of this server alone, and scripts cannot make markup out of text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// A file of the page.
struct Asset {
    /// Its path below the page's; empty for the page itself.
    name: &'static str,
    media_type: &'static str,
    content: &'static str,
}

/// Makes the table of the files beside the page out of their names.
macro_rules! assets {
    ($($media_type:ident: $($name:literal)*;)*) => {
        &[
            Asset { name: "", media_type: HTML, content: include_str!("page/index.html") },
            $($(Asset {
                name: concat!("/", $name),
                media_type: $media_type,
                content: include_str!(concat!("page/", $name)),
            },)*)*
        ]
    };
}

const ASSETS: &[Asset] = assets! {
    STYLE: "style.css";
    ICON: "icon.svg";
    SCRIPT: "app.js" "chart.js" "columns.js" "dom.js" "format.js" "keys.js" "links.js" "meanings.js" "model.js"
        "overview.js" "sections.js" "stream.js" "table.js" "tiles.js" "tip.js" "type.js" "watcher.js";
};

/// Answers a GET or HEAD of the page or one of its files; `None` for another path or method. The connection leaves out
/// the body for HEAD. A browser asks each time whether what it has is still the same, since another version of the
/// server may have another page.
pub(super) fn answer(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    let name = path.strip_prefix(PAGE)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    if name == "/" {
        return Some(to_the_page());
    }
    let asset = ASSETS.iter().find(|asset| asset.name == name)?;
    let etag = asset.etag();
    let is_known = headers.get(IF_NONE_MATCH) == Some(&etag);
    let content = if is_known { "" } else { asset.content };
    let mut response = Response::new(full(Bytes::from_static(content.as_bytes())));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fixed = [
        (CONTENT_TYPE, asset.media_type),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let fixed = fixed.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(fixed);
    response.headers_mut().insert(ETAG, etag);
    Some(response)
}

/// Leads to the page, whose files would not be found from a path with a slash at its end.
fn to_the_page() -> Response<ResponseBody> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let page = HeaderValue::from_static(PAGE);
    response.headers_mut().insert(LOCATION, page);
    response
}

impl Asset {
    /// Returns the name of its content: the SHA-256 of it.
    fn etag(&self) -> HeaderValue {
        let hash = HEXLOWER.encode(&Sha256::digest(self.content));
        HeaderValue::try_from(format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use http_body_util::BodyExt;
    use ringwatch_observe::status::thresholds::Thresholds;

    use super::*;

    fn get(path: &str, headers: &HeaderMap) -> Option<Response<ResponseBody>> {
        answer(&Method::GET, path, headers)
    }

    async fn read(path: &str) -> (Response<()>, String) {
        let (head, body) = get(path, &HeaderMap::new()).expect(path).into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        (Response::from_parts(head, ()), body)
    }

    /// Returns the words in double or single quotes, or in `href` and `src`, that name files of the page.
    fn referred(content: &str) -> impl Iterator<Item = &str> {
        content
            .split(['"', '\''])
            .filter(|word| word.starts_with("./") || word.starts_with("ui/"))
            .map(|word| word.trim_start_matches("./").trim_start_matches("ui/"))
    }

    #[test]
    fn the_page_knows_each_threshold_of_a_state_by_its_name() {
        let used: BTreeSet<_> = ASSETS
            .iter()
            .flat_map(|asset| asset.content.split("thresholds.").skip(1))
            .map(|rest| {
                let is_end = |letter: char| !letter.is_alphanumeric();
                rest.split(is_end).next().unwrap_or_default().to_owned()
            })
            .collect();
        let told = serde_json::to_value(Thresholds::default()).expect("JSON");
        let told: BTreeSet<_> = told.as_object().expect("fields").keys().cloned().collect();
        assert_eq!(used, told);
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/debug/page");
        let files = fs::read_dir(folder).expect("the folder of the page");
        let files: BTreeSet<_> = files
            .map(|file| {
                file.expect("a file")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        let served = ASSETS.iter().map(|asset| match asset.name {
            "" => "index.html".to_owned(),
            name => name.trim_start_matches('/').to_owned(),
        });
        assert_eq!(served.collect::<BTreeSet<_>>(), files);
    }

    #[tokio::test]
    async fn what_the_files_refer_to_is_served_and_nothing_is_foreign_or_inline() {
        // These are the state's, not files of the page.
        let data = ["state"];
        for asset in ASSETS {
            let path = format!("{PAGE}{}", asset.name);
            let (head, content) = read(&path).await;
            assert_eq!(head.headers()[CONTENT_SECURITY_POLICY], POLICY);
            for file in referred(&content).filter(|file| !data.contains(file)) {
                assert!(
                    get(&format!("{PAGE}/{file}"), &HeaderMap::new()).is_some(),
                    "{path} refers to {file}"
                );
            }
            let foreign = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!foreign.contains("://"), "{path} refers to another origin");
            for inline in ["<style", " style=", "onclick=", "innerHTML", "<script>"] {
                assert!(!content.contains(inline), "{path} has {inline}");
            }
        }
    }

    #[tokio::test]
    async fn a_file_that_the_browser_has_is_not_sent_again() {
        let path = "/debug/ui/app.js";
        let (head, content) = read(path).await;
        assert_eq!(head.headers()[CONTENT_TYPE], SCRIPT);
        assert!(content.contains("new Stream("));
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, head.headers()[ETAG].clone())]);
        let again = get(path, &known).expect("an answer");
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let body = again
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        assert!(body.is_empty());
        let other = get("/debug/ui", &known).expect("an answer");
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn other_paths_are_not_the_pages() {
        for path in ["/debug/uix", "/debug/ui/state", "/debug/ui/../ui", "/debug"] {
            assert!(get(path, &HeaderMap::new()).is_none(), "{path}");
        }
        let slash = get("/debug/ui/", &HeaderMap::new()).expect("an answer");
        assert_eq!(slash.status(), StatusCode::MOVED_PERMANENTLY);
        assert_eq!(slash.headers()[LOCATION], PAGE);
    }

    #[test]
    fn the_head_of_an_answer_can_be_had_alone() {
        let none = HeaderMap::new();
        for path in ["/debug/ui", "/debug/ui/", "/debug/ui/app.js"] {
            let (whole, _) = get(path, &none).expect(path).into_parts();
            let head = answer(&Method::HEAD, path, &none).expect(path);
            assert_eq!(head.status(), whole.status, "{path}");
            assert_eq!(*head.headers(), whole.headers, "{path}");
            assert!(answer(&Method::POST, path, &none).is_none(), "{path}");
        }
    }
}
